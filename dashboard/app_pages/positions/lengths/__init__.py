"""What positions buy: trained on short sequences, measured on longer ones."""
