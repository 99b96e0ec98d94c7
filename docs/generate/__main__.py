"""Write the generated pages: `python -m docs.generate FOLDER`."""

import sys
from pathlib import Path

from docs.generate import write

if len(sys.argv) != 2:
    sys.exit(__doc__)
print(f"{len(write(Path(sys.argv[1])))} pages below {sys.argv[1]}")
