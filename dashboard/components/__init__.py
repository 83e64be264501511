"""Small web components: `plot` hosts any Plotly figure, the others draw heads, films, masks and tables themselves."""
