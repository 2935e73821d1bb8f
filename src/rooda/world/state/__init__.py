"""The state folder of a work tree: rooda's own folder, outside of the tree."""
