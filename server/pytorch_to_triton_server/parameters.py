"""Parameters that several tools share, with what both faces say about them."""

from typing import Annotated

from pydantic import Field

from pytorch_to_triton_server.names import DeviceChoice

Kernel = Annotated[
    str,
    Field(description="The kernel: a kernel file path.py, or path.py:name for a function or nn.Module"),
]
Reference = Annotated[
    str | None,
    Field(
        description="What to compare with: path.py:name or path.py; default: the kernel file's own reference"
    ),
]
Inputs = Annotated[
    tuple[str, ...],
    Field(description="One input as NAME=VALUE, e.g. x=float32[M,N] or eps=1e-5; wins over the file's"),
]
Dims = Annotated[
    tuple[str, ...],
    Field(description="The sizes to try of one dimension, e.g. M=1,7,256; wins over the file's"),
]
Requirements = Annotated[
    tuple[str, ...],
    Field(description="A condition that all tried sizes meet, e.g. 'D % 2 == 0'; adds to the file's"),
]
Init = Annotated[
    tuple[str, ...],
    Field(description="An argument that an nn.Module class is constructed with, e.g. dim=512"),
]
Choice = Annotated[
    DeviceChoice,
    Field(description="cuda: compiled, on the GPU; interpreter: on the CPU; auto: a GPU where there is one"),
]
Seed = Annotated[
    int | None, Field(ge=0, lt=2**48, description="Draws the same inputs again; default: a fresh one")
]
Timeout = Annotated[
    float,
    Field(
        gt=0,
        le=7 * 86400,
        allow_inf_nan=False,
        description="Seconds that one call, an import or a trace may take, compilation included",
    ),
]
Python = Annotated[
    str | None, Field(description="A Python with torch and triton to run the code; default: this one")
]
Force = Annotated[
    bool,
    Field(description="Replace results at their place even where another call, or somebody else, wrote them"),
]
Thorough = Annotated[
    bool,
    Field(
        description="On a GPU, also watch small cases under compute-sanitizer, where it is installed: "
        "some seconds more"
    ),
]
