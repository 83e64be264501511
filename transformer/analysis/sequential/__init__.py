"""What must wait for what in a recurrent network and in a transformer, and how long each takes."""
