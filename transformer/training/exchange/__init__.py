"""A run that goes from one machine to another: packed into one file, and inspected before it is believed."""
