"""SARIF 2.1.0 as far as an audit writes it, after the standard; stricter, as nothing else may be written."""

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string", "minLength": 1}
COUNT: Schema = {"type": "integer", "minimum": 1}


def closed(*required: str, **properties: Schema) -> Schema:
    """An object with these properties and no others."""
    return {
        "type": "object",
        "required": list(required),
        "properties": properties,
        "additionalProperties": False,
    }


def one_of(*words: str) -> Schema:
    return {"enum": list(words)}


def many(item: Schema, *, unique: bool = False) -> Schema:
    return {"type": "array", "items": item, "uniqueItems": unique}


LEVEL = one_of("none", "note", "warning", "error")
MESSAGE = closed("text", text=TEXT)
MULTIFORMAT = closed("text", text=TEXT, markdown=TEXT)
BAG: Schema = {"type": "object", "properties": {"tags": many(TEXT, unique=True)}}
FILE = closed("uri", uri={"type": "string", "format": "uri-reference"}, uriBaseId=TEXT)
REGION = closed("startLine", startLine=COUNT, startColumn=COUNT, snippet=MESSAGE)
LOCATION = closed(
    "physicalLocation",
    physicalLocation=closed("artifactLocation", artifactLocation=FILE, region=REGION),
    logicalLocations=many(closed("name", name=TEXT, kind=one_of("function")), unique=True),
)
RULE = closed(
    "id",
    "name",
    "shortDescription",
    "fullDescription",
    "help",
    "defaultConfiguration",
    id=TEXT,
    name={"type": "string", "pattern": "^([A-Z][a-z0-9]*)+$"},
    shortDescription=MULTIFORMAT,
    fullDescription=MULTIFORMAT,
    help=MULTIFORMAT,
    defaultConfiguration=closed("level", level=LEVEL),
    properties=BAG,
)
RESULT = closed(
    "ruleId",
    "ruleIndex",
    "level",
    "message",
    "locations",
    "suppressions",
    ruleId=TEXT,
    ruleIndex={"type": "integer", "minimum": 0},
    level=LEVEL,
    rank={"type": "number", "minimum": 0, "maximum": 100},
    message=MESSAGE,
    locations=many(LOCATION),
    partialFingerprints={"type": "object", "additionalProperties": TEXT},
    suppressions=many(
        closed(
            "kind",
            kind=one_of("inSource", "external"),
            status=one_of("accepted", "underReview", "rejected"),
            justification=TEXT,
        ),
        unique=True,
    ),
    baselineState=one_of("new", "unchanged", "updated", "absent"),
    properties=BAG,
)
INVOCATION = closed(
    "executionSuccessful",
    executionSuccessful={"type": "boolean"},
    endTimeUtc={"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"},
    toolExecutionNotifications=many(
        closed("message", level=LEVEL, message=MESSAGE, locations=many(LOCATION, unique=True))
    ),
)
RUN = closed(
    "tool",
    "results",
    tool=closed(
        "driver", driver=closed("name", name=TEXT, semanticVersion=TEXT, rules=many(RULE, unique=True))
    ),
    columnKind=one_of("utf16CodeUnits", "unicodeCodePoints"),
    originalUriBaseIds={
        "type": "object",
        "additionalProperties": closed("uri", uri={"type": "string", "pattern": "/$"}),
    },
    invocations=many(INVOCATION),
    artifacts=many(
        closed("location", location=FILE, roles=many(one_of("analysisTarget")), sourceLanguage=TEXT),
        unique=True,
    ),
    results=many(RESULT),
)
SARIF = closed(
    "version",
    "runs",
    **{"$schema": {"type": "string", "format": "uri"}},
    version=one_of("2.1.0"),
    runs=many(RUN),
)
