"""Pictures of rotations, norms and ALiBi penalties."""
