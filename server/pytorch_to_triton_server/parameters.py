"""Parameters that several tools share, with the help that both faces show."""

from typing import Annotated

from pydantic import Field

from pytorch_to_triton_server.names import DeviceChoice

Target = Annotated[
    str, Field(description="What to convert: path.py:name for a function or nn.Module, or a kernel file")
]
Pure = Annotated[
    bool, Field(description="Draft a kernel even where a library's call (cuDNN, cuBLAS) may be faster")
]
Kernel = Annotated[
    str,
    Field(description="A kernel file path.py, or path.py:name of a function or nn.Module"),
]
Reference = Annotated[
    str | None,
    Field(description="What to compare with, path.py:name; default: the kernel file's own reference"),
]
Inputs = Annotated[
    tuple[str, ...],
    Field(description="An input, e.g. x=float32[M,N] or eps=1e-5; overrides the file's"),
]
Dims = Annotated[
    tuple[str, ...],
    Field(description="A dimension's sizes, e.g. M=1,7,256; overrides the file's"),
]
Requirements = Annotated[
    tuple[str, ...],
    Field(description="A condition on the sizes, e.g. 'D % 2 == 0'; added to the file's"),
]
Init = Annotated[
    tuple[str, ...],
    Field(description="A constructor argument of an nn.Module class, e.g. dim=512"),
]
Device = Annotated[
    DeviceChoice,
    Field(description="auto: the GPU if there is one, else Triton's interpreter on the CPU"),
]
Seed = Annotated[int | None, Field(ge=0, lt=2**48, description="Generates the same inputs again")]
Timeout = Annotated[
    float,
    Field(
        gt=0,
        le=7 * 86400,
        allow_inf_nan=False,
        description="Seconds for one call, import or trace, compilation included",
    ),
]
Python = Annotated[
    str | None, Field(description="A Python with torch and triton to run the code; default: this one")
]
Force = Annotated[
    bool,
    Field(description="Overwrite files that something else wrote"),
]
Thorough = Annotated[
    bool,
    Field(description="On a GPU, also run small cases under compute-sanitizer"),
]
