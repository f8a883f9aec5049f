#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes what people read from the schemas of plugins: the typed C++ header of a namespace, and the reference page.

  generate.py header --namespace core --output core.hpp ops-core.schema.json ...
  generate.py reference --output reference.md ops-core.schema.json ...
"""

import argparse
import json
import textwrap

KEYWORDS = set("""alignas and asm auto bool break case catch char class concept const continue default delete do double
else enum explicit export extern false float for friend goto if inline int long mutable namespace new not nullptr
operator or private protected public register return short signed sizeof static struct switch template this throw true
try typedef typename union unsigned using virtual void volatile while xor""".split())


class SchemaError(Exception):
    """A schema that cannot be rendered; the text names operator and field."""


def load(paths):
    schemas = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            schema = json.load(file)
        if schema.get("schema") != 1:
            raise SchemaError(f"{path}: schema {schema.get('schema')!r} (need 1)")
        schemas.append(schema)
    return schemas


def bare(full_id):
    return full_id.partition(".")[2]


# ---- the typed header ------------------------------------------------------------------------------------------------


def identifier(name):
    name = "".join(c if c.isalnum() else "_" for c in name)
    return name + "_" if name in KEYWORDS or name[0].isdigit() else name


def camel(name):
    return "".join(part[:1].upper() + part[1:] for part in identifier(name).split("_"))


def number(value):
    text = repr(float(value))
    return {"inf": "HUGE_VAL", "-inf": "-HUGE_VAL", "nan": "NAN"}.get(text, text)


def sentence(text):
    text = text.strip()
    if not text:
        return ""
    first = text.split()[0]
    if first.isalpha() and first.islower():
        text = text[:1].upper() + text[1:]
    return text if text.endswith(".") else text + "."


def comment(paragraphs):
    lines = []
    for paragraph in paragraphs:
        lines += textwrap.wrap(paragraph, 97, subsequent_indent="  " if paragraph.startswith("- ") else "")
    return [("// " + line).rstrip() for line in lines]


# The last parameter of every function: the line that calls it, for error texts.
WHERE = "SourceLine where_ = SourceLine::here()"


class Slot:
    """One parameter of a typed function."""

    def __init__(self, name, ctype, default=None, element="", one=False):
        self.name = name
        self.ctype = ctype
        self.default = default  # None: required
        self.element = element  # of a list, which has a second form, std::initializer_list
        self.one = one          # a single id serves, too

    def text(self, form, with_default):
        ctype = self.ctype
        if form == "list" and self.element:
            ctype = f"std::initializer_list<{self.element}>"
        elif form == "one" and self.one:
            ctype = "uint32_t"
        return f"{ctype} {self.name}" + (f" = {self.default}" if with_default and self.default is not None else "")

    def argument(self, form):
        """What hands this form on to the function that takes std::span."""
        if form == "list" and self.element:
            return f"std::span<const {self.element}>({self.name}.begin(), {self.name}.size())"
        if form == "one" and self.one:
            return f"std::span<const uint32_t>(&{self.name}, 1)"
        return self.name


def attribute(op, attr):
    """(slot, expression of type trl_attr, statements before it, declaration of an enumeration) of an attribute."""
    name, kind, default = identifier(attr["key"]), attr["type"], attr.get("default")
    optional = not attr.get("required", False)
    several = attr.get("max_each") != 1
    value = f"::trellis::detail::attr_of({name})"

    def scalar(ctype, text):
        return Slot(name, ctype, text if optional else None)

    def constants(ctype, values):
        return [f"static constexpr {ctype} {name}_default_[] = {{{', '.join(values)}}};",
                f"if ({name}.empty()) {name} = {name}_default_;"]

    if attr.get("per_batch"):
        element = "std::vector<uint32_t>" if several else "uint32_t"
        slot = Slot(name, f"std::span<const {element}>", "{}" if optional else None, element,
                    one=not several and not optional)
        before = constants("uint32_t", map(str, default)) if default and not several else []
        return slot, f"{name}_ids_", before + [f"const ::trellis::detail::IdsAttr {name}_ids_({name});"], ""
    if attr.get("value"):
        return (scalar("double", number(default[0]) if default else None),
                f"::trellis::detail::attr_of(std::span<const double>(&{name}, 1))", [], "")
    if kind in ("i64s", "f64s"):
        ctype = "int64_t" if kind == "i64s" else "double"
        before = constants(ctype, map(str if kind == "i64s" else number, default)) if default else []
        return Slot(name, f"std::span<const {ctype}>", "{}" if optional else None, ctype), value, before, ""
    if kind == "choice":
        enum = camel(bare(op["id"])) + camel(attr["key"])
        declaration = f"enum class {enum} {{ {', '.join(map(identifier, attr['choices']))} }};"
        return (scalar(enum, f"{enum}::{identifier(default)}" if optional else None),
                f"::trellis::detail::choice_of(static_cast<int64_t>({name}))", [], declaration)
    if kind == "i64":
        return scalar("int64_t", str(default)), value, [], ""
    if kind == "f64":
        return scalar("double", number(default) if optional else None), value, [], ""
    if kind == "bool":
        return scalar("bool", str(default).lower()), value, [], ""
    raise SchemaError(f"{op['id']}: attribute '{attr['key']}' has type {kind} (none an operator may have)")


def function_doc(op, outputs):
    paragraphs = [sentence(op["summary"])]
    if op["formula"]:
        paragraphs += op["formula"].split("\n")
    if op["doc"]:
        paragraphs.append(sentence(op["doc"].replace("\n", " ")))
    paragraphs += [f"- {i['name']}: {i['doc']}" for i in op["inputs"] if i["doc"]]
    paragraphs += [f"- {a['key']}: {a['doc']}{limits(a, op)}" for a in op["attrs"]]
    if len(outputs) > 1:
        paragraphs += [f"- returns {o['name']}: {o['doc']}" for o in outputs if o["doc"]]
    return comment(paragraphs)


def function(op):
    """The lines of the typed functions of one operator: one that takes spans, and the other forms of its lists."""
    name = identifier(bare(op["id"]).replace(".", "_"))
    inputs = op["inputs"]
    outputs = [o for o in op["outputs"] if not o["hidden"]]
    variadic = inputs[-1] if inputs and inputs[-1]["variadic"] else None
    fixed = [i for i in inputs if i is not variadic]
    if variadic and any(i["optional"] for i in fixed):
        raise SchemaError(f"{op['id']}: an optional input before a variadic one cannot be typed")
    attributes = [attribute(op, a) for a in op["attrs"]]

    # Required parameters first; then what may be left out, inputs before attributes.
    slots = [] if inputs else [Slot("graph", "const Graph&")]
    slots += [Slot(identifier(i["name"]), "const Expr&", "{}" if i["optional"] else None) for i in fixed]
    if variadic:
        slots.append(Slot(identifier(variadic["name"]), "std::span<const Expr>", None, "Expr"))
    slots += [slot for slot, *_ in attributes]
    slots = [s for s in slots if s.default is None] + [s for s in slots if s.default is not None]

    declarations = [enum for *_, enum in attributes if enum]
    result = "Expr"
    if len(outputs) > 1:
        result = camel(bare(op["id"])) + "Out"
        declarations += [f"struct {result} {{", f"  Expr {', '.join(identifier(o['name']) for o in outputs)};", "};"]

    body = [f'static const uint32_t op_ = op_name_id("{op["id"]}");']
    for _, _, before, _ in attributes:
        body += before
    if attributes:
        body.append(f"const trl_attr attrs_[] = {{{', '.join(value for _, value, *_ in attributes)}}};")
    names = [identifier(i["name"]) for i in fixed]
    if not inputs:
        given = "graph"
    elif variadic and not fixed:
        given = identifier(variadic["name"])
    elif variadic:
        given = "in_"
        body.append(f"const ::trellis::detail::JoinedInputs in_({{{', '.join(names)}}}, {identifier(variadic['name'])});")
    elif len(names) == 1:
        given = f"{{&{names[0]}, 1}}"
    else:
        given = "in_"
        body.append(f"const Expr in_[] = {{{', '.join(names)}}};")
    attrs = "attrs_" if attributes else "{}"
    # Lists of ids say themselves how many batch elements they are for.
    ragged = [slot.name for slot, *_ in attributes if slot.element.startswith("std::vector")]
    lists = f", static_cast<uint32_t>({ragged[0]}.size())" if ragged else ", 0"
    if result == "Expr":
        body += ["Expr out_;", f"apply_ordered(op_, {given}, {attrs}, {{&out_, 1}}{lists}, where_);", "return out_;"]
    else:
        body += [f"Expr out_[{len(outputs)}];", f"apply_ordered(op_, {given}, {attrs}, out_{lists}, where_);",
                 f"return {{{', '.join(f'out_[{i}]' for i in range(len(outputs)))}}};"]

    def define(form, statements):
        # Where the list form stands in for a default, everything up to it must be given: no call fits two overloads.
        last = max((i for i, s in enumerate(slots) if form == "list" and s.element and s.default is not None),
                   default=-1)
        parameters = ", ".join(s.text(form, i > last) for i, s in enumerate(slots))
        return [f"inline {result} {name}({parameters}, {WHERE}) {{"] + ["  " + line for line in statements] + ["}"]

    def pass_on(form):
        return [f"return {name}({', '.join(s.argument(form) for s in slots)}, where_);"]

    lines = declarations + function_doc(op, outputs) + define("span", body)
    if any(s.element for s in slots):
        lines += define("list", pass_on("list"))
    if sum(s.one for s in slots) == 1:
        lines += define("one", pass_on("one"))
    if variadic and all(slot.default is not None for slot, *_ in attributes):
        # A few inputs one by one; nothing can stand behind a parameter pack, so more than that come without a line.
        rest = identifier(variadic["name"])
        defaults = [slot.default for slot, *_ in attributes]
        for n in range(1, 5):
            several = [f"{rest}{k}" for k in range(n)]
            parameters = [f"const Expr& {i}" for i in names + several] + [WHERE]
            given = names + [f"{{{', '.join(several)}}}"] + defaults + ["where_"]
            lines += [f"inline {result} {name}({', '.join(parameters)}) {{", f"  return {name}({', '.join(given)});", "}"]
        lines += ["template <class... Inputs>",
                  "  requires(sizeof...(Inputs) > 4 && (std::is_same_v<Inputs, Expr> && ...))",
                  f"{result} {name}({', '.join([f'const Expr& {n}' for n in names] + [f'const Inputs&... {rest}'])}) {{",
                  f"  return {name}({', '.join(names + [f'{{{rest}...}}'] + defaults)}, {{}});", "}"]
    return lines


def header(schemas, namespace):
    ops = sorted((op for schema in schemas for op in schema["ops"] if op["id"].partition(".")[0] == namespace),
                 key=lambda op: op["id"])
    plugins = ", ".join(f"{s['plugin']} {s['version']}" for s in schemas
                        if any(op["id"].startswith(namespace + ".") for op in s["ops"]))
    space = "trellis::ops" if namespace == "core" else f"trellis::ops::{identifier(namespace)}"
    out = ["// SPDX-License-Identifier: Apache-2.0", "//",
           f"// The operators of namespace {namespace}, typed. Made from the schemas of: {plugins or 'no plugin'}.",
           "//",
           "// Every call resolves its operator once per process; the runtime of the inputs' graph serves it. Errors:",
           "// Error(shape, argument, range) as the operator says, Error(plugin) when the runtime does not have it.",
           "#pragma once", "",
           "#include <cmath>", "#include <cstdint>", "#include <initializer_list>", "#include <span>",
           "#include <type_traits>", "#include <vector>", "", "#include <trellis/ops.hpp>", "",
           f"namespace {space} {{", ""]
    for op in ops:
        out += function(op) + [""]
    out.append(f"}}  // namespace {space}")
    return "\n".join(out) + "\n"


# ---- the reference page ----------------------------------------------------------------------------------------------


def limits(attr, entry):
    """"; in [0, 1]" and the like, for people."""
    parts = []
    lo, hi = attr.get("lo"), attr.get("hi")
    if lo is not None and hi is not None:
        parts.append(f"in [{lo:g}, {hi:g}]")
    elif lo is not None:
        parts.append(f"at least {lo:g}")
    elif hi is not None:
        parts.append(f"at most {hi:g}")
    if "bound" in attr:
        bound = attr["bound"]
        axis = f"axis {bound['axis']}" if "axis" in bound else "the chosen axis"
        size = f"the size of {axis} of {entry['inputs'][bound['input']]['name']}"
        parts.append(f"up to {size}" if bound["closed"] else f"below {size}")
    if attr.get("per_batch"):
        parts.append("one for each batch element" if attr["max_each"] == 1 else "a list for each batch element")
    return "; " + ", ".join(parts) if parts else ""


def cell(text):
    return text.replace("|", "\\|").replace("\n", " ")


def default_text(attr):
    if attr.get("required"):
        return "required"
    value = attr["default"]
    if attr["type"] in ("i64s", "f64s"):
        if not value:
            return "none"
        return ", ".join(f"{v:g}" for v in value)
    if attr["type"] == "bool":
        return str(value).lower()
    if attr["type"] == "f64":
        return f"{value:g}"
    return str(value)


def attribute_table(entry):
    if not entry["attrs"]:
        return []
    lines = ["", "| attribute | type | default | |", "|---|---|---|---|"]
    for a in entry["attrs"]:
        kind = " / ".join(a["choices"]) if a["type"] == "choice" else a["type"]
        lines.append(f"| `{a['key']}` | {kind} | {default_text(a)} | {cell(a['doc'] + limits(a, entry))} |")
    return lines


def signature(op):
    parts = []
    for i in op["inputs"]:
        name = i["name"] + ("..." if i["variadic"] else "")
        parts.append(f"[{name}]" if i["optional"] else name)
    parts += [a["key"] if a.get("required") else f"{a['key']}={default_text(a)}" for a in op["attrs"]]
    outputs = ", ".join(o["name"] for o in op["outputs"] if not o["hidden"])
    return f"{outputs} = {bare(op['id'])}({', '.join(parts)})"


def item(entry, plugin):
    lines = ["", f"### {bare(entry['id'])}", "", sentence(entry["summary"])]
    if entry["doc"]:
        lines += ["", sentence(entry["doc"])]
    formula = entry.get("formula")
    if formula:
        lines += ["", "```", formula, "```"]
    facts = [f"`{entry['id']}` version {entry['version']}", f"plugin {plugin}", f"`{entry['source']}`"]
    if entry["aliases"]:
        facts.append("also " + ", ".join(f"`{a}`" for a in entry["aliases"]))
    return lines, ["", ", ".join(facts)]


def op_item(op, plugin):
    lines, facts = item(op, plugin)
    lines += ["", f"`{signature(op)}`"]
    described = [i for i in op["inputs"] + op["outputs"] if i["doc"] and not i.get("hidden")]
    if described:
        lines += ["", "| | |", "|---|---|"] + [f"| `{i['name']}` | {cell(i['doc'])} |" for i in described]
    lines += attribute_table(op)
    examples = [e.strip() for e in op["example"].split(";") if e.strip()]
    if examples:
        lines += ["", "Examples (`{sizes}xbatch` stands for an input): " + "; ".join(f"`{e}`" for e in examples)]
    notes = []
    if op["stochastic"]:
        notes.append("random")
    if op["role"]:
        notes.append(f"has the role `{op['role']}`")
    without = [i["name"] for i in op["inputs"] if not i["gradient"]]
    if without:
        notes.append("no gradient for " + ", ".join(without))
    if notes:
        lines += ["", sentence("; ".join(notes))]
    return lines + facts


def builder_item(builder, plugin):
    lines, facts = item(builder, plugin)
    low, high = builder["predecessors"]
    count = str(low) if low == high else f"{low} to {high}" if high is not None else f"{low} or more"
    lines += ["", f"Predecessor states of a step: {count}."]
    return lines + attribute_table(builder) + facts


def other_item(entry, plugin):
    lines, facts = item(entry, plugin)
    slots = entry.get("slots")
    if slots:
        lines += ["", "State kept per parameter: " + ", ".join(f"`{s['name']}` ({s['doc']})" for s in slots) + "."]
    return lines + attribute_table(entry) + facts


SECTIONS = [("ops", "Operators", op_item), ("builders", "Builders", builder_item),
            ("softmaxes", "Softmax builders", other_item), ("initializers", "Initializers", other_item),
            ("trainers", "Trainers", other_item)]


def reference(schemas):
    lines = ["# Reference", "",
             "Made from the schemas of the plugins; `trellis op describe NAME` says the same of what is installed."]
    for kind, title, render in SECTIONS:
        entries = sorted(((e, f"{s['plugin']} {s['version']}") for s in schemas for e in s[kind]),
                         key=lambda pair: pair[0]["id"])
        if not entries:
            continue
        lines += ["", f"## {title}", "", "| name | |", "|---|---|"]
        lines += [f"| [{bare(e['id'])}](#{bare(e['id']).replace('.', '')}) | {cell(e['summary'])} |" for e, _ in entries]
        for entry, plugin in entries:
            lines += render(entry, plugin)
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["header", "reference"])
    parser.add_argument("--namespace", default="core", help="of the header")
    parser.add_argument("--output", required=True)
    parser.add_argument("schemas", nargs="*", help="JSON of trellis-schema")
    args = parser.parse_intermixed_args()
    try:
        schemas = load(args.schemas)
        text = header(schemas, args.namespace) if args.kind == "header" else reference(schemas)
    except (OSError, ValueError, SchemaError) as error:
        parser.exit(1, f"generate.py: {error}\n")
    with open(args.output, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
