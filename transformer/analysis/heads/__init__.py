"""What attention heads do: surveys, metrics, one head in full, circuits, induction, rollout."""
