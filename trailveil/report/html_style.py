"""The style sheet of pages. Colours are named as trailveil.plots.svg names those of pictures."""

from trailveil.plots import THEME

_DARK = {
    "--ink": "#e8eaed",
    "--muted": "#a8b0b8",
    "--paper": "#14171a",
    "--grid": "#39414a",
    "--released": "#6cb8ff",
    "--recorded": "#f0a85c",
    "--circle": "#ff8a80",
    "--noise": "#b9a5ff",
}


def _variables(colours: dict[str, str]) -> str:
    return " ".join(f"{name}: {value};" for name, value in colours.items())


LIGHT = {name: colour for colour, name in THEME.items()}
"""Colours by name on a light background; each that stands for something has 4.5 to 1 on it."""
DARK = _DARK
"""The same on a dark one."""

STYLE = f"""
:root {{ color-scheme: light dark; {_variables(LIGHT)} }}
@media (prefers-color-scheme: dark) {{ :root {{ {_variables(DARK)} }} }}
* {{ box-sizing: border-box; }}
html {{ -webkit-text-size-adjust: 100%; }}
body {{ margin: 0; background: var(--paper); color: var(--ink); line-height: 1.5;
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }}
main:focus {{ outline: none; }}
main, footer {{ max-width: 44rem; margin: 0 auto; padding: 0 1rem; overflow-wrap: break-word; }}
h1, h2, h3, p, li {{ overflow-wrap: anywhere; }}
h1 {{ font-size: 1.45rem; line-height: 1.25; margin: 1.2rem 0 .6rem; }}
h2 {{ font-size: 1.15rem; line-height: 1.3; margin: 2rem 0 .5rem; padding-top: .8rem;
  border-top: 1px solid var(--grid); }}
h3 {{ font-size: 1rem; margin: 1.2rem 0 .3rem; }}
p, ul, ol {{ margin: .5rem 0; }}
ul {{ padding-left: 1.2rem; }}
li {{ margin: .25rem 0; }}
.note {{ border-left: .3rem solid var(--released); padding: .1rem 0 .1rem .8rem; }}
.private {{ border: .2rem solid var(--circle); padding: .4rem .8rem; font-weight: 600; }}
.warn {{ list-style: none; padding-left: 0; }}
.warn li {{ border-left: .3rem solid var(--circle); padding-left: .7rem; margin: .6rem 0; }}
.of {{ margin-left: .8rem; }}
figure {{ margin: .8rem 0; }}
figcaption {{ color: var(--muted); font-size: .9rem; }}
svg.chart {{ display: block; width: 100%; max-width: 32rem; height: auto; }}
svg.chart[aria-labelledby^="map"] {{ max-width: 44rem; }}
svg.chart text {{ font-family: system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }}
svg.chart * {{ stroke-linejoin: round; stroke-linecap: butt; }}
table {{ border-collapse: collapse; width: 100%; max-width: 32rem; font-size: .95rem; }}
caption {{ text-align: left; color: var(--muted); font-size: .9rem; padding-bottom: .3rem; }}
th, td {{ text-align: left; vertical-align: top; padding: .3rem .5rem .3rem 0;
  border-bottom: 1px solid var(--grid); font-weight: 400; }}
thead th {{ color: var(--muted); white-space: nowrap; }}
td {{ font-variant-numeric: tabular-nums; min-width: 4.2rem; }}
footer {{ color: var(--muted); font-size: .85rem; margin-top: 2rem; padding-bottom: 2rem; }}
.skip {{ position: absolute; left: -100rem; }}
.skip:focus {{ left: 1rem; top: 1rem; background: var(--paper); color: var(--ink);
  padding: .5rem; outline: .2rem solid var(--released); }}
@media print {{
  :root {{ {_variables(LIGHT)} }}
  body {{ font-size: 10pt; }}
  main, footer {{ max-width: none; padding: 0; }}
  .skip {{ display: none; }}
  svg.chart {{ max-width: 22rem; }}
  table, figcaption {{ font-size: 9pt; }}
  figure, table, li {{ break-inside: avoid; }}
  h2, h3 {{ break-after: avoid; }}
}}
"""
"""No address is in it, so a page asks nothing of any network."""
