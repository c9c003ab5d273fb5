# SPDX-License-Identifier: Apache-2.0
"""Generates the agent's declaration of the plan: its parts (`plan_parts.rs`), its steps (`step_parts.rs`) and its
programs (`app_parts.rs`).

A value has the Rust type that its declaration names (`AgentType`), and the check of `plan_values.rs`. A choice of words
is an enumeration. Names differ if Rust has its own word for the concept.
"""

import json
import textwrap
from collections.abc import Iterable, Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from hourglass.contract import plan
from hourglass.contract.plan import apps, hops, steps, streams
from hourglass.contract.plan.plan_values import AgentType, PlanPart, Writes

WIDEST = 110
NUMBERS = {"u8", "u16", "u32", "u64", "i32", "i64", "usize"}
ENUMS = {
    ("not_ect", "ect1", "ect0"): "Ecn",
    ("load", "socket"): "Backend",
    ("icmp", "udp"): "Protocol",
    ("cable", "air"): "Medium",
    ("add", "replace"): "Change",
    ("wire", "ifb"): "DeviceKind",
    ("none",): "AddrGenMode",
    ("up", "down"): "LinkState",
    ("hostapd",): "Tool",
    ("kill", "pause", "resume", "restart"): "Act",
    ("folder", "archive", "debian", "host", "mount"): "RootKind",
    ("tcp", "udp"): "Transport",
}
"""The enumeration of each choice."""
NAMES: dict[type[PlanPart], str] = {
    plan.PlanEvent: "Event",
    plan.PlanCapture: "Capture",
    plan.PlanRadio: "Radio",
    apps.PlanApp: "App",
    apps.ContainerFile: "File",
}
RENAMED = {"rooms": "containers", "room": "container", "made": "created", "place": "location"}
STREAMS = {kind: get_args(get_type_hints(kind)["kind"])[0] for kind in get_args(get_args(streams.Stream)[0])}
READY = get_args(get_args(apps.Ready)[0])
STEPS = (*dict.fromkeys([*get_args(get_args(steps.Step)[0]), *get_args(get_args(steps.EventStep)[0])]),)
PARTS: tuple[type[PlanPart], ...] = (
    plan.Plan, plan.PlanEvent, Writes, streams.Phase, hops.Path, hops.Hop, plan.Sampling, plan.PlanCapture,
    plan.PlanRadio,
)  # fmt: skip
APPS: tuple[type[PlanPart], ...] = (apps.Root, apps.Container, apps.Mount, apps.ContainerFile, apps.PlanApp)


def plan_parts(origin: str) -> str:
    """Return the plan and its streams, paths, and measurements."""
    base = _fields(streams.StreamBase)
    distinct = {kind: [name for name in _fields(kind) if name not in base and name != "kind"] for kind in STREAMS}
    lines = [*_head("The plan's parts.", origin, "std::net::IpAddr", "crate::app_parts::{App, Container, Root}",
                    "crate::plan_values::*", "crate::step_parts::Step")]  # fmt: skip
    for part in PARTS:
        lines += _struct(part, NAMES.get(part, part.__name__), _fields(part))
    lines += _struct(streams.StreamBase, "Base", base)
    for kind, name in STREAMS.items():
        lines += _struct(kind, name.title(), distinct[kind])
    lines += [
        "",
        "#[derive(Debug, Clone, Serialize, Deserialize)]",
        '#[serde(tag = "kind", rename_all = "lowercase")]',
        "pub enum Traffic {",
    ]
    lines += [*(f"    {name.title()}({name.title()})," for name in STREAMS.values()), "}"]
    lines += _pair("Traffic that is measured.", "Stream", "base", "Base", "traffic", "Traffic")
    return _text([*lines, *_enums([*PARTS, streams.StreamBase, *STREAMS])])


def step_parts(origin: str) -> str:
    """Return the steps, and the templates of those that a tool carries out."""
    lines = [*_head("The steps of a plan.", origin, "std::collections::BTreeMap", "std::net::IpAddr",
                    "crate::plan_values::*")]  # fmt: skip
    structs: dict[type[PlanPart], str] = {steps.DaemonStep: "Daemon", steps.TellStep: "ControlLine"}
    for part, name in structs.items():
        lines += _struct(part, name, _work(part), "PartialEq, Eq, ")
    lines += _pair("A step, with its node and the key to blame for it.", "Step", "context", "Context", "work", "Work")
    lines += _struct(steps.ToolStep, "Context", ["node", "origin"])
    lines += ["", "/// The work of a step.", "#[derive(Debug, Clone, Serialize, Deserialize)]",
              '#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]', "pub enum Work {"]  # fmt: skip
    for step, word in _steps():
        if step in structs:
            lines.append(f"    {word.title()}({structs[step]}),")
            continue
        lines += [f"    {word.title()} {{"]
        lines += [*(f"    {line}" for name in _work(step) for line in _field(step, name, "")), "    },"]
    lines += ["}", "", "impl Work {", "    pub fn name(&self) -> &'static str {", "        match self {"]
    for step, word in _steps():
        pattern = "(_)" if step in structs else " { .. }"
        lines.append(f'            Self::{word.title()}{pattern} => "{word}",')
    lines += ["        }", "    }", "}", "", "/// Each kind of step with its tool, and the templates of its lines."]
    tools = [(step, word) for step, word in _steps() if issubclass(step, steps.ToolStep)]
    lines.append(f"pub const TEMPLATES: [(&str, &str, &[&str]); {len(tools)}] = [")
    for tool_step, word in tools:
        lines += [f'    ("{word}", "{tool_step.tool}", &[']
        lines += [*(f"        {json.dumps(template)}," for template in tool_step.templates), "    ]),"]
    return _text([*lines, "];", *_enums(STEPS)])


def app_parts(origin: str) -> str:
    """Return the programs and their containers."""
    lines = [
        *_head("The programs of a plan.", origin, "std::collections::BTreeMap", "crate::plan_values::*", split=False)
    ]
    for part in APPS:
        lines += _struct(part, NAMES.get(part, part.__name__), _fields(part))
    lines += ["", "/// The condition for starting the programs that come after a program.",
              "#[derive(Debug, Clone, Serialize, Deserialize)]",
              '#[serde(tag = "when", rename_all = "lowercase", deny_unknown_fields)]', "pub enum Ready {"]  # fmt: skip
    for part in READY:
        (word,) = get_args(get_type_hints(part)["when"])
        fields = [line for name in _fields(part) if name != "when" for line in _field(part, name, "")]
        lines += [f"    {word.title()} {{", *(f"    {line}" for line in fields), "    },"]
    return _text([*lines, "}", *_enums([*APPS, *READY])])


def _steps() -> Iterator[tuple[type[Any], str]]:
    """Yield each step with its words: the user's lines have a step for each tool."""
    for step in STEPS:
        for word in get_args(get_type_hints(step)["do"]):
            yield step, word


def _head(about: str, origin: str, *uses: str, split: bool = True) -> list[str]:
    return [
        "// SPDX-License-Identifier: Apache-2.0", f"//! {about}", "//!", f"//! {origin}", "",
        '#![allow(dead_code, reason = "some parts are for readers of plan and records")]',
        '#![allow(clippy::doc_markdown, clippy::struct_field_names, reason = "the words are those of the plan")]',
        '#![allow(clippy::wildcard_imports, reason = "the checks of values")]', "",
        *(f"use {use};" for use in uses if use.startswith("std")), "",
        "use serde::{Deserialize, Deserializer, Serialize};" if split else "use serde::{Deserialize, Serialize};", "",
        *(f"use {use};" for use in uses if not use.startswith("std")),
    ]  # fmt: skip


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"


def _sentence(part: type[PlanPart]) -> str:
    return " ".join((part.__doc__ or "").split())


def _fields(part: type[PlanPart]) -> list[str]:
    return list(part.model_fields)


def _pair(about: str, name: str, *parts: str) -> list[str]:
    """Return a structure whose keys are those of two."""
    first, kind, second, second_kind = parts
    return [
        "", f"/// {about}", "#[derive(Debug, Clone, Serialize)]", f"pub struct {name} {{", "    #[serde(flatten)]",
        f"    pub {first}: {kind},", "    #[serde(flatten)]", f"    pub {second}: {second_kind},", "}", "",
        f"impl<'de> Deserialize<'de> for {name} {{",
        "    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {",
        f"        split(deserializer).map(|({first}, {second})| Self {{ {first}, {second} }})", "    }", "}",
    ]  # fmt: skip


def _work(step: type[PlanPart]) -> list[str]:
    return [name for name in _fields(step) if name not in ("do", "node", "origin")]


def _struct(part: type[PlanPart], name: str, fields: list[str], traits: str = "") -> Iterator[str]:
    yield ""
    yield from (f"/// {line}" for line in textwrap.wrap(_sentence(part), WIDEST - 4))
    copied = "Copy, " if all(_type(hint)[0] in NUMBERS for hint in _hints(part, fields)) else ""
    yield f"#[derive(Debug, Clone, {copied}{traits}Serialize, Deserialize)]"
    if part not in (streams.StreamBase, steps.ToolStep):
        yield "#[serde(deny_unknown_fields)]"
    yield f"pub struct {name} {{"
    for field in fields:
        yield from _field(part, field, "pub ")
    yield "}"


def _hints(part: type[PlanPart], fields: list[str]) -> list[Any]:
    hints = get_type_hints(part, include_extras=True)
    return [hints[name] for name in fields]


def _field(part: type[PlanPart], name: str, visibility: str) -> Iterator[str]:
    kind, check = _type(*_hints(part, [name]))
    if check:
        yield f'    #[serde(deserialize_with = "{check}")]'
    if name in RENAMED:
        yield f'    #[serde(rename = "{name}")]'
    yield f"    {visibility}{RENAMED.get(name, name)}: {kind},"


def _type(annotation: Any) -> tuple[str, str]:
    """Return the Rust type of a declaration, and the function that checks it, or ""."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        for mark in annotation.__metadata__:
            if isinstance(mark, AgentType):
                return mark.type, mark.check
        return _type(arguments[0])
    if origin is Literal:
        return ("u32", "version") if arguments == (plan.VERSION,) else (ENUMS[arguments], "")
    if origin is list:
        kind, check = _type(arguments[0])
        return f"Vec<{kind}>", f"{check}_list" if check else ""
    if origin is dict:
        return "BTreeMap<String, String>", ""
    if origin in (Union, UnionType):
        options = [argument for argument in arguments if argument is not NoneType]
        if len(options) < len(arguments):
            kind, check = _type(options[0])
            return f"Option<{kind}>", f"present_{check}" if check else "present"
        return _union(options[0]), ""
    if isinstance(annotation, type) and issubclass(annotation, PlanPart):
        return NAMES.get(annotation, annotation.__name__), ""
    return {str: "String", bool: "bool"}[annotation], ""


def _union(option: type[PlanPart]) -> str:
    return "Step" if option in STEPS else "Stream" if option in STREAMS else "Ready"


def _enums(parts: Iterable[type[PlanPart]]) -> Iterator[str]:
    """Yield the enumerations of the parts' choices."""
    choices: dict[tuple[str, ...], None] = {}
    for part in parts:
        for name in _fields(part):
            annotation = get_type_hints(part)[name]
            for option in (annotation, *get_args(annotation)):
                if get_origin(option) is Literal and get_args(option) in ENUMS:
                    choices[get_args(option)] = None
    for words in choices:
        yield ""
        yield "#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]"
        yield '#[serde(rename_all = "snake_case")]'
        yield f"pub enum {ENUMS[words]} {{"
        yield from (f"    {word.title().replace('_', '')}," for word in words)
        yield "}"
        yield ""
        yield f"impl {ENUMS[words]} {{"
        yield "    pub fn name(self) -> &'static str {"
        yield "        match self {"
        yield from (f'            Self::{word.title().replace("_", "")} => "{word}",' for word in words)
        yield "        }"
        yield "    }"
        yield "}"
