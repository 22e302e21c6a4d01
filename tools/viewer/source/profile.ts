// Shows where the time of a launch goes, by the author's lines.
import type { ComparedLine, Profile, View } from "./model";
import { element, timeWords } from "./words";

function table(heads: string[], rows: (string | { text: string; line: string })[][], find: (words: string) => void): HTMLElement {
  const made = element("table");
  const head = element("tr");
  for (const word of heads) head.append(element("th", "", word));
  made.append(element("thead"));
  made.tHead!.append(head);
  const body = made.createTBody();
  for (const row of rows) {
    const line = element("tr");
    for (const cell of row) {
      const at = element("td");
      if (typeof cell === "string") at.textContent = cell;
      else if (cell.line) {
        const button = element("button", "link", cell.text);
        button.title = "Find the operations of this line";
        button.addEventListener("click", () => find(cell.line));
        at.append(button);
      } else at.textContent = cell.text || "-";
      line.append(at);
    }
    body.append(line);
  }
  const frame = element("div", "table");
  frame.append(made);
  return frame;
}

const mostRows = 200;

export function showProfile(host: HTMLElement, view: View, find: (words: string) => void): void {
  host.append(element("h2", "", `Where the time of ${view.raw.name} goes`));
  let any = false;
  const { comparison } = view.raw;
  if (comparison && comparison.launch) {
    any = true;
    host.append(
      element("h3", "", "Measured beside predicted"),
      element(
        "p",
        "",
        `The launch took ${timeWords(comparison.measured)}, predicted ${timeWords(comparison.predicted)}. Times are of a median thread block.`,
      ),
    );
    const row = (of: ComparedLine) => {
      const gap = of.measured - of.predicted;
      const bar = gap > 0 ? `slower ${timeWords(gap)}` : gap < 0 ? `faster ${timeWords(-gap)}` : "the same";
      return [{ text: of.line, line: of.line }, of.name, of.kind, timeWords(of.measured), timeWords(of.predicted), bar];
    };
    host.append(table(["line", "operation", "kind", "measured", "predicted", "gap"], comparison.lines.slice(0, mostRows).map(row), find));
  }
  for (const track of view.tracks) {
    const profile: Profile | undefined = view.raw.profiles[track.key];
    if (!profile || !profile.launch) continue;
    any = true;
    host.append(
      element("h3", "", `${track.key === "measured" ? "Measured" : "Predicted"}: ${timeWords(profile.ns)}`),
      element("p", "", `${track.title}. An operation off the critical path could take a little longer at no cost.`),
    );
    const rows = profile.lines.slice(0, mostRows).map((of) => [
      { text: of.line, line: of.line },
      of.name,
      timeWords(of.path),
      profile.ns ? `${((100 * of.path) / profile.ns).toFixed(1)} %` : "-",
      String(of.spans),
      timeWords(of.total),
      timeWords(of.longest),
      `rank ${of.rank}, block ${of.block}`,
    ]);
    host.append(table(["line", "operation", "on the path", "of the launch", "spans", "total", "longest", "longest at"], rows, find));
  }
  if (any) return;
  const schedule = view.raw.kind === "schedule";
  const why = schedule ? "The profile is shown for plans of thread blocks only." : "There is no profile: it needs predicted or measured times of a plan.";
  host.append(element("p", "empty", why));
}
