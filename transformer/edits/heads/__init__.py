"""Edits of what heads hand on: their output z, [batch, head, query, d_head], at `decoder.0.self_attention.z`."""
