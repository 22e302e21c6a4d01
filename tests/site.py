#!/usr/bin/env python3
"""Checks the site that tools/docs makes, and that tools/docs refuses mistakes: site.py SOURCE_FOLDER WORK_FOLDER

tools/docs itself follows the links and stops at warnings. Here every page must be in the site and in its navigation, the
references must have what they are made from, and the search must work from files, in a browser if there is one.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT, WORK = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
LIMIT_S = 300
sys.path.insert(0, str(ROOT / "docs/site"))
sys.dont_write_bytecode = True
import check  # noqa: E402
import prepare  # noqa: E402
from pages import anchors  # noqa: E402

failures = 0


def expect(condition, what):
    global failures
    if not condition:
        failures += 1
        print(f"FAILED: {what}")


def made(root, site):
    done = subprocess.run([root / "tools/docs", "--no-install", "--output", site], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=LIMIT_S)
    return done.returncode, done.stdout


def pages_are_there(site):
    """Checks that each page is in the site and in its navigation, and reads as on a code host."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "bench/README.md",
             *sorted((ROOT / "docs").rglob("*.md"))]
    expect(len(pages) > 60, f"there are only {len(pages)} pages")
    home = (site / "index.html").read_text()
    for page in pages:
        name = re.sub(r"(^|/)README$", r"\1index", page.relative_to(ROOT).with_suffix("").as_posix()) + ".html"
        if not (site / name).exists():
            expect(False, f"the site lacks {name}")
            continue
        expect(f'<li><a href="./{name}"' in home, f"the navigation lacks {name}")
        text = re.sub(r"<(pre|code)\b.*?</\1>", "", (site / name).read_text(), flags=re.S)
        left = re.search(r"\]\([\w./#-]+\)|```|<p>(?:- |\d+\. |\| )|\n(?:- |\d+\. |\| ?-+ ?\|)", text)
        expect(not left, f"{name} shows Markdown: {left and text[left.start():left.start() + 60]!r}")
        lacking = sorted(anchor for anchor in anchors(page) if f'id="{anchor}"' not in text)
        expect(not lacking, f"{name} lacks the anchors {lacking}")
        prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
        rows = len(re.findall(r"^\|(?![ :|-]*-[ :|-]*$)", prose, re.M))
        expect(text.count("<tr>") == rows, f"{name} has {text.count('<tr>')} rows of tables, and the page has {rows}")
    expect('href="../cpp/executor_8hpp.html"' in (site / "docs/calls.html").read_text(), "a link to a header leads elsewhere")
    expect((site / "compiler/proof/excerpts/copies.cpp.html").exists(), "a source that a page links to is not there")


def references_are_there(site):
    index = "".join(path.read_text(errors="replace") for path in (site / "cpp/search").glob("*.js"))
    for name in ("Executor", "MemoryChannel", "CHORALE_PROGRAM", "chorale_executor_execute", "chorale_nccl_calls", "put_with_signal",
                 "sendrecv_tiles", "relaxed_signal", "issue_ns", "dependency_sync"):
        expect(f"['{name}'," in index, f"the search of the C++ reference lacks {name}")
    channel = (site / "cpp/classchorale_1_1dsl_1_1MemoryChannel.html").read_text()
    expect("Copies <code>src</code> here to <code>dst</code> at the peer." in channel, "MemoryChannel::put() lacks its description")
    expect('<div class="fragment"><div class="line">{&quot;name&quot;:&quot;put&quot;' in channel, "the code of a comment is not code")
    for path in site.rglob("*.html"):
        expect(str(WORK) not in path.read_text(errors="replace"), f"{path.name} names a folder of this machine")
    python = (site / "python-reference.html").read_text()
    for words in ('id="plancheck"', 'id="memorychannelput"', 'id="run_local"', "Reads a plan file, JSON or CBOR.",
                  "Pushes a transfer", "The form of packets for execute(), or None."):
        expect(words in python, f"the Python reference lacks {words}")


def search_works(site):
    index = (site / "search/index.js").read_text()
    expect((site / "search/lunr.js").stat().st_size > 10_000, "lunr is not there")
    for location in ("docs/nccl.html", "docs/tutorial/1-first-plan.html", "python-reference.html#plan"):
        expect(f'"location": "{location}"' in index, f"the index lacks {location}")
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not browser:
        print("search in a browser: skipped, there is no Chromium")
        return
    with tempfile.TemporaryDirectory() as home:
        page = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={home}",
                               "--virtual-time-budget=20000", "--dump-dom", f"file://{site}/docs/python.html?q=several+hosts"],
                              text=True, capture_output=True, timeout=LIMIT_S).stdout
    found = re.search(r'<ol id="found".*?</ol>', page, re.S)
    expect(found and 'href="../docs/hosts.html"' in found.group(), f"the search finds {found and found.group()[:300]}")


def wrong_links_are_found():
    with tempfile.TemporaryDirectory() as folder:
        site = pathlib.Path(folder)
        (site / "a.html").write_text('<p id="there"><a href="b.html#there">b</a><a href="#there">a</a><a href="https://x.org/">x</a>')
        (site / "b.html").write_text('<p id="there"><a href="a.html">a</a>')
        expect(not list(check.wrong_links(site)), "right links are refused")
        for wrong in ('<a href="c.html">', '<a href="a.html#gone">', '<a href="#gone">', '<a href="./">', '<script src="https://x.org/x.js">',
                      '<img src="//x.org/x.png">'):
            (site / "b.html").write_text(f'<p id="there">{wrong}')
            expect(len(list(check.wrong_links(site))) == 1, f"{wrong} is not refused")
        (site / "b.html").write_text('<p id="there">')
        (site / "b.css").write_text("@import url(https://x.org/x.css);")
        expect(list(check.wrong_links(site)), "a style sheet loads from a network")


def comments_keep_their_lines():
    for path, name in prepare.headers():
        text = path.read_text()
        expect(prepare.marked(text).count("\n") == text.count("\n"), f"the copy of {name} has other lines")
    for lines, wanted in (([" Copies.", "   a();", "", "   b();", " So."], [" Copies. \\code{.cpp}", "   a();", "", "   b(); \\endcode", " So."]),
                          ([" \\param x  long,", "   and more"],) * 2, ([" - one", "   item"],) * 2):
        expect(prepare.marked_comment(lines) == wanted, f"{lines} becomes {prepare.marked_comment(lines)}")


def mistakes_are_refused(folder):
    """Checks that tools/docs stops at mistakes in a copy of what it reads."""
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "bench", "docs", "tools/docs", "tools/setup.sh", "cmake/optional_parts.cmake",
                 "bindings/python", "compiler/proof", "tests/mscclpp", *prepare.PUBLIC):
        copy = folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, copy)
    header, page = folder / "executor/include/chorale/executor.hpp", folder / "docs/calls.md"
    right = header.read_text()
    header.write_text(right.replace("\\param out ", "\\param nothing ", 1))
    status, said = made(folder, folder / "build/site")
    expect(status and "argument 'nothing'" in said, f"a parameter that is not there is not refused: {status} {said}")
    header.write_text(right)
    page.write_text(page.read_text() + "\n[gone](gone.md)\n")
    (folder / "docs/new.md").write_text("# New\n")
    status, said = made(folder, folder / "build/site")
    for words in ("docs/calls.md: links to gone.md", "docs/README.md: does not name docs/new.md"):
        expect(status and words in said, f"no error {words}: {status} {said}")
    (folder / "mine").mkdir()
    (folder / "mine/file").touch()
    expect(made(folder, folder / "mine")[0] and (folder / "mine/file").exists(), "a folder that is no site is removed")


def main():
    wrong_links_are_found()
    comments_keep_their_lines()
    for program in ("mkdocs", "doxygen"):
        if not shutil.which(program):
            print(f"skipped: there is no {program} on this machine")
            sys.exit(1 if failures else 77)
    site = WORK / "site"
    status, said = made(ROOT, site)
    expect(not status, f"tools/docs fails: {said}")
    if not status:
        pages_are_there(site)
        references_are_there(site)
        search_works(site)
    with tempfile.TemporaryDirectory() as folder:
        mistakes_are_refused(pathlib.Path(folder))
    print(f"{failures} wrong")
    sys.exit(bool(failures))


if __name__ == "__main__":
    os.umask(0o022)
    main()
