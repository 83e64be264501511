"""Small models that are trained while somebody looks: asked for by a click, or behind a number."""
