"""What everything rests on: records that check themselves, plug-ins found in a folder, files that are written whole,
painted cells as a short text."""
