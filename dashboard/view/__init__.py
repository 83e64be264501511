"""What is looked at: one frozen record that goes to the URL and back, the session that holds it, clicks, trainings."""
