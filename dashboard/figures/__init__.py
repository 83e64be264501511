"""Figures: arrays in, `go.Figure` out, one file a family. They know numpy and Plotly, and nothing else."""
