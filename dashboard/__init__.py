"""The screen: a Streamlit dashboard over the `transformer` package. `streamlit run dashboard/app.py`."""
