"""Three small web components: `plot` hosts any Plotly figure, `head_grid` draws every head, `film` plays a training."""
