"""Charts as SVG, drawn here for pages, reports, notebooks and files alike."""
