"""Five questions that every lecture asks, one at a time, each answered by a sentence made of numbers and a picture."""

import streamlit as st

from dashboard.app_pages.learn.questions import bag, dense_layers, recurrence, residuals, shapes
from dashboard.parts.prose import plain, show_code
from dashboard.parts.widgets import late_title, stepped
from dashboard.view import session

QUESTIONS = {
    "1": ("Recurrence", "How many steps must wait for one another, in a GRU and in a transformer?", recurrence.answer),
    "2": ("Q, K, V", "Which shapes have Q, K and V, and which others are possible?", shapes.answer),
    "3": ("Dense layers", "Are the dense layers of different blocks the same?", dense_layers.answer),
    "4": ("Residuals", "Why are there residual connections?", residuals.answer),
    "5": ("Positions", "Why are positions encoded?", bag.answer),
}
CODE = {
    "1": (
        "transformer.analysis.sequential.dependencies.waits_for",
        "transformer.analysis.sequential.dependencies.moments",
    ),
    "2": (
        "transformer.attention.scaled_dot_product_attention",
        "dashboard.app_pages.learn.questions.shapes.attend",
    ),
    "3": ("transformer.blocks.FeedForward", "transformer.analysis.stream.dense_layers.compare_feeds"),
    "4": (
        "transformer.blocks.Block.forward",
        "transformer.blocks.Block.kept",
        "transformer.analysis.stream.depth.look_down",
    ),
    "5": ("transformer.analysis.encodings.read_in_two_orders", "transformer.analysis.accuracy.bags.bag_ceiling"),
}


title = late_title()
number = stepped("asked", {name: f"{name} {each[0]}" for name, each in QUESTIONS.items()}, label="Question")
_, question, answer = QUESTIONS[number]
st.markdown(f"**{question}**")
title.title(plain(answer(session.chosen())), anchor=False)
show_code(*CODE[number])
