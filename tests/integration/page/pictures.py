"""Pictures of parts of a page, compared with kept ones.

A sheet holds parts below each other, at a third of their size; sheets.json has the height of each. Chromium's next version, or
another rasterization of letters, moves edges by some pixels. So the test compares the brightness of cells of 9 x 9 pixels of
the page, each with the range of the cells around it in the other picture. Few cells may be outside of it, and a part may be a
little higher or lower. Colours of equal brightness are for people who look at the sheets.
"""
import json
import os

from PIL import Image, ImageChops, ImageFilter

SHRINK, CELL = 3, 3  # a cell is a square of pixels of a sheet
LEVELS = 16          # of 255 by which a cell may be outside
MOST_CELLS = 0.01    # that may exceed it
MOST_HEIGHT, LINE = 0.03, 8  # by which the height may differ: a share of it, or a line of text


def shrunk(picture):
    return picture.resize((picture.width // SHRINK, max(1, round(picture.height / SHRINK))), Image.LANCZOS)


def cells(picture):
    size = (max(1, picture.width // CELL), max(1, picture.height // CELL))
    return picture.convert("L").resize(size, Image.BOX, (0, 0, size[0] * CELL, size[1] * CELL))


def outside(picture, other):
    """Share of the cells of `picture` that are darker or brighter than all around the same place of `other`."""
    darker = ImageChops.subtract(other.filter(ImageFilter.MinFilter(3)), picture)
    brighter = ImageChops.subtract(picture, other.filter(ImageFilter.MaxFilter(3)))
    levels = ImageChops.lighter(darker, brighter).getdata()
    return sum(level > LEVELS for level in levels) / len(levels)


def difference(kept, part):
    """The difference in the shrunk picture of a part, or None."""
    if part.width != kept.width or abs(part.height - kept.height) > max(LINE, MOST_HEIGHT * kept.height):
        return f"{part.width} x {part.height} pixels instead of {kept.width} x {kept.height}, shrunk"
    height = min(kept.height, part.height)
    before, now = (cells(each.crop((0, 0, each.width, height))) for each in (kept, part))
    wrong = max(outside(before, now), outside(now, before))
    return f"{wrong:.2%} of it look different" if wrong > MOST_CELLS else None


class Sheets:
    def __init__(self, folder):
        self.folder, self.index = folder, os.path.join(folder, "sheets.json")
        self.heights = {}
        if os.path.exists(self.index):
            with open(self.index, encoding="utf-8") as file:
                self.heights = json.load(file)

    def path(self, sheet):
        return os.path.join(self.folder, sheet + ".webp")

    def compare(self, sheet, parts):
        """The differences of the parts, pictures by name; one line each."""
        if sheet not in self.heights:
            return [f"{sheet}: there is no kept picture"]
        kept, wrong, top = Image.open(self.path(sheet)).convert("RGB"), [], 0
        if list(parts) != list(self.heights[sheet]):
            return [f"{sheet}: shows {list(parts)} instead of {list(self.heights[sheet])}"]
        for name, height in self.heights[sheet].items():
            problem = difference(kept.crop((0, top, kept.width, top + height)), shrunk(parts[name]))
            top += height
            if problem:
                wrong.append(f"{sheet}: {name}: {problem}")
        return wrong

    def keep(self, sheet, parts):
        small = {name: shrunk(part) for name, part in parts.items()}
        self.heights[sheet] = {name: part.height for name, part in small.items()}
        whole = Image.new("RGB", (max(part.width for part in small.values()), sum(part.height for part in small.values())))
        top = 0
        for part in small.values():
            whole.paste(part, (0, top))
            top += part.height
        os.makedirs(self.folder, exist_ok=True)
        whole.save(self.path(sheet), quality=60, method=6)
        with open(self.index, "w", encoding="utf-8") as file:
            json.dump(self.heights, file, indent=1)
            file.write("\n")
