"""What a run's safetensors files say of themselves, before anything of them is loaded."""

from __future__ import annotations

from pathlib import Path

from safetensors import SafetensorError

from transformer.config import RunConfig
from transformer.foundation.checks import reason
from transformer.foundation.foreign import open_tensors, quoted, record
from transformer.foundation.versions import read_once
from transformer.training.stored.checks import expect

Shapes = dict[str, tuple[int, ...]]
OTHER = "its weights were trained with other settings"


@read_once(answers=False)
def shapes(path: Path, config: RunConfig) -> Shapes | None:
    """The shapes of a snapshot's weights; None where they are the initial ones, which are not stored.

    Raises ValueError or KeyError when it is no snapshot of a run with these settings.
    """
    metadata, found = header(path, "attention-lab/1")
    expect(RunConfig.from_dict(record(metadata["config"])) == config, OTHER)
    initial = metadata.get("weights") == "initial"
    expect(not (initial and found), "it holds weights, and says that it holds none")
    return None if initial else found


@read_once(answers=False)
def header(path: Path, version: str) -> tuple[dict[str, str], Shapes]:
    """The metadata and the shapes; the format's own reader checks that the file is whole. Raises ValueError, and
    OSError."""
    try:
        with open_tensors(path, "np") as file:
            metadata = file.metadata() or {}
            found = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"it is not a whole safetensors file ({reason(error)})") from None
    form = metadata.get("format")
    expect(form == version, f"its format is {quoted(form)} and not {version}")
    return metadata, found
