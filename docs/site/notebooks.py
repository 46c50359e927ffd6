"""Tutorials as notebooks of Jupyter: the same words and lines, without what they print."""

import json
import re

_BLOCK = re.compile(r"^```(python|console|text)\n(.*?)^```\n?", flags=re.DOTALL | re.MULTILINE)


def notebook(page: str) -> str:
    """A page of Markdown as a notebook: a cell for each text, each program, each command."""
    parts = _BLOCK.split(page)
    cells = [_cell("markdown", parts[0])]
    for kind, block, after in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        if kind == "python":
            cells.append(_cell("code", block))
        elif kind == "console":
            cells.append(_cell("code", re.sub(r"^\$ ", "!", block, flags=re.MULTILINE)))
        cells.append(_cell("markdown", after))
    whole = {
        "cells": [
            cell | {"id": f"cell-{number}"}
            for number, cell in enumerate(cell for cell in cells if cell["source"])
        ],
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _cell(kind: str, text: str) -> dict[str, object]:
    code: dict[str, object] = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": text.strip(), **code}
