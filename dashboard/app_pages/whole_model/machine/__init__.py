"""The machine: the chosen model drawn from its config, from tokens to probabilities, with one token's real vectors."""
