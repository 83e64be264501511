"""Executes docs/notebook.ipynb and keeps what its cells say, in words: `python docs/notebook.py`."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent
NOTEBOOK = HERE / "notebook.ipynb"
PATIENCE = 300
"""Seconds that a cell may take."""


def executed() -> nbformat.NotebookNode:
    """The notebook with the outputs of this moment, as texts. Raises CellExecutionError where a cell fails."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = NotebookClient(
        notebook, timeout=PATIENCE, store_widget_state=False, resources={"metadata": {"path": str(HERE)}}
    )
    client.execute()
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = [each for each in cell.outputs if each.output_type == "execute_result"]
            for output in cell.outputs:  # a widget lives in its kernel; its words stay
                output.data = {"text/plain": output.data["text/plain"]}
    return notebook


if __name__ == "__main__":
    nbformat.write(executed(), NOTEBOOK)
