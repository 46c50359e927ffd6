// The recording on a plain map: a graticule, a scale bar, the track, what is protected, and circles.

/* global L */
const STEPS = [60, 30, 15, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002, 0.0001];
const APART = 95; // pixels between lines, at least

/** Draw a recording; tapped(index) is told the point of the track nearest to a tap. */
export function drawing(element, recording, tapped) {
  const map = L.map(element, { zoomSnap: 0.25, zoomControl: false, attributionControl: Boolean(recording.basemap) });
  L.control.zoom({ position: "topright" }).addTo(map);
  if (recording.basemap) {
    const attribution = document.createElement("span");
    attribution.textContent = recording.basemap.host;
    L.tileLayer(recording.basemap.template, { attribution: attribution.innerHTML }).addTo(map);
    map.attributionControl.setPrefix(false);
  }
  L.control.scale({ maxWidth: 140, imperial: false }).addTo(map);
  const grid = L.layerGroup().addTo(map);
  const circles = L.layerGroup().addTo(map);
  const points = recording.points.map((one) => one.at);
  const runs = segments(recording.points);
  for (const run of runs) line(run, "track", 2).addTo(map);
  const chosen = L.layerGroup().addTo(map);
  const published = L.layerGroup().addTo(map);
  const picked = L.layerGroup().addTo(map);
  for (const run of runs) {
    const touch = L.polyline(run, { className: "touch", weight: 28, bubblingMouseEvents: false });
    touch.on("click", (event) => tapped(nearest(map, points, event.latlng))).addTo(map);
  }
  const stops = L.layerGroup().addTo(map);
  const whole = L.latLngBounds(points).pad(0.15);
  map.fitBounds(whole, { maxZoom: 17, animate: false });
  let [seen, leaves] = [whole, whole];
  map.on("moveend", () => graticule(map, grid));
  map.on("resize", () => map.fitBounds(seen, { maxZoom: 17, animate: false }));
  graticule(map, grid);

  return {
    /** Mark where parts that may be chosen are, and the track of those that are. */
    parts(all, toggle) {
      chosen.clearLayers();
      stops.clearLayers();
      for (const part of all) {
        const inside = recording.points.filter((one) => one.ms >= part.begin_ms && one.ms <= part.end_ms);
        if (part.chosen && inside.length) line(inside.map((one) => one.at), "part", 6).addTo(chosen);
        const className = part.chosen ? "stop chosen" : "stop";
        const mark = L.circleMarker(part.at, { className, radius: 9, weight: 3, bubblingMouseEvents: false });
        mark.on("click", () => toggle(part)).addTo(stops);
      }
    },
    /** What leaves, as lines; a line of one point is a fix by itself. */
    published(lines) {
      published.clearLayers();
      leaves = lines.length ? L.latLngBounds(lines.flat()) : whole;
      for (const points of lines) {
        if (points.length > 1) line(points, "published", 4).addTo(published);
        else L.circleMarker(points[0], { className: "published", radius: 2, interactive: false }).addTo(published);
      }
    },
    /** Circles of what is left, in metres, around each part. */
    circles(found) {
      circles.clearLayers();
      let bounds = L.latLngBounds(whole.getSouthWest(), whole.getNorthEast()).extend(leaves);
      for (const one of found) {
        const options = { interactive: false, weight: 2 };
        if (one.no_idea_m) {
          const size = L.circle(one.at, { ...options, radius: one.no_idea_m, className: "no-idea-circle" });
          size.addTo(circles);
          bounds = L.latLngBounds(bounds).extend(size.getBounds());
        }
        if (one.knows_most_m) {
          L.circle(one.at, { ...options, radius: one.knows_most_m, className: "knows-circle" }).addTo(circles);
        }
      }
      seen = bounds;
      if (found.length && !map.getBounds().contains(bounds)) {
        map.fitBounds(bounds, { maxZoom: 17, animate: false });
      }
    },
    /** Mark the part that is about to be added. */
    pick(first, last) {
      picked.clearLayers();
      line(points.slice(first, last + 1), "picked", 9).addTo(picked);
      for (const at of [points[first], points[last]]) {
        L.circleMarker(at, { className: "picked", radius: 11, weight: 3, interactive: false }).addTo(picked);
      }
    },
    unpick() {
      picked.clearLayers();
    },
  };
}

function line(points, className, weight) {
  return L.polyline(points, { className, weight, interactive: false });
}

function segments(points) {
  const runs = [];
  points.forEach((one, i) => {
    if (i === 0 || one.segment !== points[i - 1].segment) runs.push([]);
    runs.at(-1).push(one.at);
  });
  return runs;
}

function nearest(map, points, where) {
  const target = map.latLngToLayerPoint(where);
  let best = 0;
  let least = Infinity;
  points.forEach((at, i) => {
    const away = map.latLngToLayerPoint(at).distanceTo(target);
    if (away < least) [best, least] = [i, away];
  });
  return best;
}

function graticule(map, grid) {
  grid.clearLayers();
  const bounds = map.getBounds();
  const [south, north] = [Math.max(bounds.getSouth(), -85), Math.min(bounds.getNorth(), 85)];
  const [west, east] = [bounds.getWest(), bounds.getEast()];
  const size = map.getSize();
  const [tall, wide] = [size.y, size.x].map((pixels) => Math.max(pixels / APART, 1));
  const corner = map.containerPointToLatLng([0, 22]);
  for (const degree of lines(south, north, tall)) {
    line([[degree, west], [degree, east]], "grid", 1).addTo(grid);
    if (degree < corner.lat) tick([degree, west], degree, "N", "S", [-4, 17]).addTo(grid);
  }
  const edge = map.containerPointToLatLng([size.x - 110, 0]);
  for (const degree of lines(west, east, wide)) {
    line([[south, degree], [north, degree]], "grid", 1).addTo(grid);
    if (degree < edge.lng) tick([north, degree], degree, "E", "W", [-4, -2]).addTo(grid);
  }
}

function lines(low, high, most) {
  const step = STEPS.findLast((one) => (high - low) / one <= most) ?? STEPS[0];
  const found = [];
  for (let i = Math.ceil(low / step); i * step <= high && found.length < 40; i += 1) found.push(i * step);
  return found;
}

function tick(at, degree, positive, negative, anchor) {
  const name = document.createElement("span");
  const rounded = Number(Math.abs(degree).toFixed(4));
  name.textContent = `${rounded}° ${degree < 0 ? negative : positive}`;
  const icon = L.divIcon({ className: "tick", html: name, iconSize: null, iconAnchor: anchor });
  return L.marker(at, { icon, interactive: false, keyboard: false });
}
