"""MkDocs calls these functions. They add the navigation, and files that make the search work without a server."""
import json
import pathlib
import re

from pygments.formatters import HtmlFormatter


def slug(heading, separator):
    """Makes anchors as GitHub does, so that links to headings work there and here."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)


def on_config(config):
    config.nav = json.loads((pathlib.Path(config.docs_dir).parent / "navigation.json").read_text())
    config.mdx_configs["toc"]["slugify"] = slug
    return config


def on_post_build(config):
    site = pathlib.Path(config.site_dir)
    # A browser lets a page of a local file load scripts, but no other files, so the index is a script.
    index = json.loads((site / "search/search_index.json").read_text())["docs"]
    for part in index:
        part["text"] = part["text"].replace(" # ", " ").removeprefix(part["title"] + " ")  # the marks of links to headings
    (site / "search/index.js").write_text(f"var search_pages = {json.dumps(index)};\n")
    for name in ("search_index.json", "worker.js"):
        (site / "search" / name).unlink()
    light = HtmlFormatter(style="default").get_style_defs(".codehilite")
    dark = HtmlFormatter(style="monokai").get_style_defs(".codehilite")
    (site / "code.css").write_text(f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n")
