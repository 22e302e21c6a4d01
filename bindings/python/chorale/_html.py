"""Shows plans, findings and times as HTML in notebooks. Every text is escaped."""
from html import escape

_CELL = "text-align:left;padding:2px 8px;vertical-align:top"
_MOST_ROWS = 200


def _row(tag, cells):
    return "<tr>" + "".join(f'<{tag} style="{_CELL}">{escape(str(cell))}</{tag}>' for cell in cells) + "</tr>"


def _table(head, rows):
    rows = list(rows)
    more = len(rows) - _MOST_ROWS
    body = "".join(_row("td", row) for row in rows[:_MOST_ROWS])
    if more > 0:
        body += _row("td", [f"and {more} more"])
    return f"<table>{_row('th', head)}{body}</table>"


def _place(file, line):
    return f"{file}:{line}" if line else ""


def plan(self):
    facts = [f"{self.thread_blocks} thread blocks", f"{self.operation_count} operations"]
    if self.certified:
        facts.append("certified")
    first = _table(["block", "op", "operation", "line"],
                   ([op["block"], op["op"], op["operation"], _place(op["file"], op["line"])] for op in self.operations(0))) \
        if self.ranks else ""
    return (f"<div><b>{escape(self.name)}</b>: {escape(self.headline)}; {escape(', '.join(facts))}"
            f"<details><summary>operations of rank 0</summary>{first}</details></div>")


def finding(self):
    where = _place(self.file, self.line)
    text = f"<div><b>{escape(where + ': ' if where else '')}{escape(self.message)}</b> [{escape(self.kind)}]"
    if self.operation:
        text += f"<br>rank {self.rank}, thread block {self.block}, op {self.op}: <code>{escape(self.operation)}</code>"
    for note in self.notes:
        place = _place(note["file"], note["line"])
        text += f"<br>note: {escape(place + ': ' if place else '')}{escape(note['message'])}"
    if self.help:
        text += f"<br>help: {escape(self.help)}"
    if self.counter_example:
        text += f"<pre>{escape(self.counter_example)}</pre>"
    return text + "</div>"


def findings(all_of_them):
    if not all_of_them:
        return "<div>nothing was found</div>"
    return "".join(finding(one) for one in all_of_them[:_MOST_ROWS])


def times(self):
    rows = ([size, f"{one.us:.2f}", f"{self.algbw_gb_s(row):.2f}"] for row, (size, one) in enumerate(self))
    return f"<div><b>{escape(self.plan.name)}</b>: {escape(self.plan.headline)}{_table(['bytes', 'us', 'algbw GB/s'], rows)}</div>"
