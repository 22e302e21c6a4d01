#!/usr/bin/env python3
"""Checks that links within a site lead somewhere, and that it needs no network: check.py SITE_FOLDER

A link has to lead to a file of the site and, if it names an anchor, to an element with this id. Pages may link to other
sites, but may load nothing from them.
"""
import html.parser
import pathlib
import re
import sys
import urllib.parse

LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}


class Page(html.parser.HTMLParser):
    """Collects the links of a page, what it loads, and the ids of its elements."""

    def __init__(self, path):
        super().__init__()
        self.links, self.ids = [], set()
        self.feed(path.read_text(errors="replace"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or (tag == "a" and name == "name"):
                self.ids.add(value)
            elif name in ("href", "src") and value:
                self.links.append((value, (tag, name) in LOADED))


def wrong_links(site):
    """Yields (page, what is wrong) of each wrong link of a site."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    if not pages:
        yield site, "has no pages"
    for path, page in pages.items():
        for link, is_loaded in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                if is_loaded and (parts.netloc or parts.scheme.startswith("http")):
                    yield path, f"loads {link} from a network"
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                yield path, f"links to {link}, and there is no such file"
            elif parts.fragment and target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].ids:
                yield path, f"links to {link}, where nothing has this id"
    for path in sorted(site.rglob("*.css")):
        for address in re.findall(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)""", path.read_text()):
            yield path, f"loads {address} from a network"


def main():
    site = pathlib.Path(sys.argv[1]).resolve()
    found = sorted({(path.relative_to(site).as_posix(), what) for path, what in wrong_links(site)})
    for path, what in found:
        print(f"error: {path} {what}")
    if not found:
        print(f"{sum(1 for _ in site.rglob('*.html'))} pages without a wrong link")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
