"""Pages outside the dashboard that show what stood in it: a follower's page, hand-outs, and the film as a file."""
