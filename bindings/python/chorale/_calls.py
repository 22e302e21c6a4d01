"""Says in one sentence which argument of a call is missing or wrong."""
import re

_MOST_SHOWN = 8  # arguments; of longer calls, only the arguments that have no default
_EXAMPLES = {
    "tb": "the number of a thread block, such as tb=0",
    "initial_value": "how often it can be acquired before a release, such as initial_value=0",
    "tb_list": "numbers of thread blocks, such as [0, 1]",
    "num_chunks": "the chunks that one turn of the loop works on",
    "unit": "the bytes of a unit, such as 2**20",
}


def _split(text):
    """Splits at the commas that are outside of brackets and quotes."""
    parts, depth, quote, part = [], 0, "", ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "([{<":
            depth += 1
        elif letter in ")]}>":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(part.strip())
            part = ""
            continue
        part += letter
    return parts + [part.strip()] if part.strip() else parts


class _Argument:
    def __init__(self, text):
        self.name, _, rest = text.partition(": ")
        self.type, equals, self.default = rest.partition(" = ")
        self.kind = re.sub(r"^Optional\[(.*)\]$", r"\1", self.type)
        self.optional = bool(equals)

    def __str__(self):
        if not self.optional:
            return self.name
        enumerator = re.fullmatch(r"<([\w.]+): -?\d+>", self.default)
        return f"{self.name}={enumerator[1] if enumerator else self.default}"

    def fits(self, value):
        """Returns False only if the value is certainly of a wrong type."""
        kind = self.kind
        if value is None:
            return kind != self.type or not (kind in ("int", "float", "bool", "str") or "chorale." in kind)
        if kind == "int":
            return hasattr(value, "__index__") and -2**63 <= value.__index__() < 2**64
        if kind == "bool":
            return isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")
        if kind == "float":
            return hasattr(value, "__float__") or hasattr(value, "__index__")
        if kind == "str":
            return isinstance(value, (str, bytes))
        if kind.startswith("List["):
            inner = _Argument(f"x: {kind[5:-1]}")
            return hasattr(value, "__len__") and not isinstance(value, (str, bytes, dict)) and \
                hasattr(value, "__getitem__") and all(inner.fits(one) for one in value)
        if kind.startswith("chorale."):
            return kind.rpartition(".")[2] in (one.__name__ for one in type(value).__mro__)
        return True


def _listed(words):
    words = list(words)
    return " and ".join([", ".join(words[:-1])] * (len(words) > 1) + words[-1:])


def _shown(value):
    text = repr(value)
    name = type(value).__name__
    return f"{name} {text}" if isinstance(value, (int, float, str, bytes, type(None))) and len(text) <= 40 else \
        f"an object of type {name}"


def _wrong_type(argument, value):
    kind = argument.kind.replace("chorale._chorale.", "")
    text = f"takes {argument.name} of type {kind}, not {_shown(value)}"
    if kind == "Chunk" and hasattr(value, "buffer_type"):
        text += f"; name chunks of the buffer, such as {argument.name}=buffer[0] or buffer[0:2]"
    if kind == "int" and hasattr(value, "__index__"):
        text = f"takes {argument.name} as an integer of its range, not {value.__index__()}"
    if kind.startswith("List[") and kind[5:-1] in (one.__name__ for one in type(value).__mro__):
        text += f"; write {argument.name}=[...], even for one"
    return text


def _problems(arguments, args, keywords):
    """Returns what is wrong with a call of one overload, and how many arguments have a wrong type."""
    names = [argument.name for argument in arguments]
    found = []
    unknown = [name for name in keywords if name not in names]
    if any(name.startswith("*") for name in names):
        arguments = [argument for argument in arguments if not argument.name.startswith("*")]
        unknown = []
    elif len(args) > len(arguments):
        found.append(f"takes at most {len(arguments)} argument{'' if len(arguments) == 1 else 's'}, not {len(args)}")
    if unknown:
        found.append(f"has no argument {_listed(unknown)}")
    given = dict(zip((argument.name for argument in arguments), args))
    twice = [name for name in given if name in keywords]
    if twice:
        found.append(f"is given {_listed(twice)} twice, by position and by name")
    given.update(keywords)
    missing = [argument.name for argument in arguments if not argument.optional and argument.name not in given]
    if missing:
        example = _EXAMPLES.get(missing[0]) if len(missing) == 1 else None
        found.append(f"lacks the argument{'' if len(missing) == 1 else 's'} {_listed(missing)}"
                     + (f", {example}" if example else ""))
    types = [_wrong_type(argument, given[argument.name]) for argument in arguments
             if argument.name in given and not argument.fits(given[argument.name])]
    return found + types, len(types)


def sentence(text, args, keywords):
    """Returns the sentence for a call.

    text      what pybind11 says of it, which lists the overloads
    args      the positional arguments, with self
    keywords  the others, by name
    """
    name = text.partition("(")[0]
    overloads = re.findall(r"^    \d+\. ([\w.]*)\((.*)\)(?: -> .*)?$", text.partition("\n\nInvoked with")[0], re.M)
    if not overloads:
        return text
    if name == "__init__":
        name, args = overloads[0][0].rpartition(".")[2], args[1:]
    each = []
    for _, listed in overloads:
        arguments, values = [_Argument(one) for one in _split(listed)], args
        if arguments and arguments[0].name == "self":
            arguments, values = arguments[1:], args[1:]
            full = f"{type(args[0]).__name__}.{name}" if args else name
        else:
            full = name
        each.append((_problems(arguments, values, keywords), full, arguments))
    (found, _), full, arguments = min(each, key=lambda one: (not one[0][0], one[0][1], len(one[0][0])))
    short = len(arguments) <= _MOST_SHOWN
    takes = ", ".join([str(argument) for argument in arguments if short or not argument.optional] + ([] if short else ["..."]))
    if not found:
        types = [type(value).__name__ for value in args] + [f"{key}: {type(value).__name__}" for key, value in keywords.items()]
        return f"{full}({takes}) does not take these types or values: {', '.join(types)}"
    return f"{full}() {found[0]}; the call is {full}({takes})"
