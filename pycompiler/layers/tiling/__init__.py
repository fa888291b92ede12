"""MNCoreTiles: cuts axes into tiles that overlap, with zeros outside of the axes."""
