"""The files of a run's folder, each read as if a stranger had written it: bounded, typed, and held against the run's
settings. Pages, the command line, uploads, packing and resuming all read through here."""
