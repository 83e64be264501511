"""Edits of what a model is told about the order of its tokens.

Where each token of a stack believes to stand is a site, `decoder.places`: int [position], counted from 0. What is put
there is what the encoding works with, whichever it is: vectors that are added, a rotation, or a bias by distance
(`PositionalEncoding.at`). A model without positions has no such site.

All stacks are meant unless `site` names one, "encoder.places" or "decoder.places": of an encoder-decoder the source
and the tokens alike, each counted by itself. Cross-attention is told of places only by vectors that were added.
"""
