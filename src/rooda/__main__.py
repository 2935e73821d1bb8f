"""`python -m rooda` is the same as `rooda`."""

import sys

from rooda.front.cli.main import main

sys.exit(main())
