"""Street networks: read from OpenStreetMap files or GeoJSON, held as arrays; and a made-up town."""
