"""What the command line says to do next, in the words of the page, which has no options."""

import re

_WORDS = (
    (r",? (or )?(leave|state|name|add) [^,;(]*\((--no-returns|--subject)\)[^,;]*", ""),
    (r", or state fewer --ways of a place", ""),
    (r" \((--no-ends with --between|--between|--activity, --floor|say the same --tz.*?)\)", ""),
    (r"--mechanism (\w+)", r"\1"),
    (r"--radius (\d[\d,.]*)", r"\1 m"),
    (r"--radius", "distance"),
    (r"--activity (\w+)", r"a \1"),
    (r"--activity", "way to move"),
    (r"--epsilon", "epsilon"),
    (r"add --stops auto", "choose it in the list"),
    (r"add --replace", "tick “replace it”"),
    (r"add --again", "tick “both versions count”"),
    (r"add --overwrite", "tick “Replace the file”"),
)


def on_the_page(words: str) -> str:
    """The same words without the options that the page has its own names for."""
    for option, name in _WORDS:
        words = re.sub(option, name, words)
    return words
