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
    Field(description="One input as NAME=VALUE, e.g. x=float32[M,N] or eps=1e-5; overrides the file's"),
]
Dims = Annotated[
    tuple[str, ...],
    Field(description="The sizes to try for one dimension, e.g. M=1,7,256; overrides the file's"),
]
Requirements = Annotated[
    tuple[str, ...],
    Field(description="A condition on all sizes to try, e.g. 'D % 2 == 0'; added to the file's"),
]
Init = Annotated[
    tuple[str, ...],
    Field(description="A constructor argument of an nn.Module class, e.g. dim=512"),
]
Device = Annotated[
    DeviceChoice,
    Field(description="cuda: compiled, on the GPU; interpreter: on the CPU; auto: the GPU if there is one"),
]
Seed = Annotated[
    int | None, Field(ge=0, lt=2**48, description="Generates the same inputs again; default: a new seed")
]
Timeout = Annotated[
    float,
    Field(
        gt=0,
        le=7 * 86400,
        allow_inf_nan=False,
        description="Seconds that one call, import or trace may take, compilation included",
    ),
]
Python = Annotated[
    str | None, Field(description="A Python that has torch and triton, to run the code; default: this one")
]
Force = Annotated[
    bool,
    Field(description="Overwrite existing files, even those that another call or somebody else wrote"),
]
Thorough = Annotated[
    bool,
    Field(
        description="On a GPU, also run small cases under compute-sanitizer, where it is installed; takes "
        "a few seconds more"
    ),
]
