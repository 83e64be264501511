"""Pictures that several pages draw: arrays in, `go.Figure` out. They know numpy and Plotly, and nothing else."""
