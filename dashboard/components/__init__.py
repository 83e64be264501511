"""Two small web components: `plot` hosts any Plotly figure, `head_grid` draws every head at once."""
