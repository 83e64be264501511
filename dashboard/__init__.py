"""The screen: a Streamlit dashboard over the `transformer` package. `attention-lab run`."""
