"""The exceptions of the package."""

_MOST_SHOWN = 20  # findings in the text of an exception


class UsageError(ValueError):
    """A call was wrong. The caller can fix it without looking at the machine."""


class PlanError(ValueError):
    """A text is not a plan. `json_path` names the part that is wrong, such as "/gpus/0/threadblocks/1"."""

    def __init__(self, message, json_path=""):
        super().__init__(message)
        self.json_path = json_path


class RunError(RuntimeError):
    """The machine or the run failed.

    `reason` is "timed_out", "aborted", "deadlock", "peer_lost", "mismatch", "resources" or "other".
    """

    def __init__(self, message, reason="other"):
        super().__init__(message)
        self.reason = reason


class Findings(list):
    """A list of `chorale.Finding`. str() of it is what the command prints; print() shows it."""

    def __str__(self):
        if not self:
            return "nothing was found"
        count = len(self)
        text = "".join(str(finding) for finding in self[:_MOST_SHOWN])
        if count > _MOST_SHOWN:
            text += f"and {count - _MOST_SHOWN} more\n"
        return f"{text}{count} error{'' if count == 1 else 's'}"

    def _repr_html_(self):
        from . import _html
        return _html.findings(self)


class FindingsError(ValueError):
    """A program or a plan is wrong. `findings` lists all that was found, as `chorale.Finding`."""

    def __init__(self, findings):
        super().__init__(findings)
        self.findings = Findings(findings)

    def __str__(self):
        return str(self.findings)

    def _repr_html_(self):
        from . import _html
        return _html.findings(self.findings)
