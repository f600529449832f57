"""What all drawings have in common: sizes of type, and colours.

Colours never carry a meaning alone: the reader may not see them, and the printer may
not have them.
"""

STYLE = {
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.constrained_layout.use": True,
}
DARK_BLUE = "#1b4f8a"
