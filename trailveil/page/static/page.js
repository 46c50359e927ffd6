// What is chosen, what it costs, and saving it. Every number comes from the server.

import { drawing } from "/static/drawing.js";

const PATIENCE = 500; // milliseconds after which it is said that an answer takes time
const ELSEWHERE = "This page must be open in one window, got another that asks: close it, then choose once more.";
const $ = (id) => document.getElementById(id);
const state = { recording: null, parts: [], map: null, plan: null, command: "", begun: null, turn: 0, looking: false, asked: null, waiting: 0 };

start();

async function start() {
  const recording = await (await fetch("/api/recording")).json();
  if (recording.choose) {
    $("choosing").hidden = false;
    $("file").addEventListener("change", choose);
    return;
  }
  $("choosing").hidden = true;
  document.querySelector("main").hidden = false;
  state.recording = recording;
  state.parts = recording.parts;
  $("name").textContent = recording.name;
  document.title = `PRIVATE: ${recording.name} - Trailveil`;
  $("told").textContent = recording.basemap
    ? recording.basemap.told
    : "Nothing leaves it, so there is no street map: trailveil open --basemap URL fetches one, and its server learns roughly where you were.";
  $("zone").textContent = `Times are in ${recording.zone}.`;
  $("save").textContent = `Save as ${recording.output}`;
  if (recording.places.length) {
    $("places").textContent = `Protected wherever it is visited: ${recording.places.join(", ")}`;
    $("places").hidden = false;
  }
  for (const id of ["from", "to"]) {
    $(id).max = recording.points.length - 1;
    $(id).addEventListener("input", pick);
  }
  changed(); // the server works while the track is drawn
  state.map = drawing($("map"), recording, tapped);
  for (const id of ["radius", "epsilon", "activity", "mechanism"]) $(id).addEventListener("input", changed);
  $("choices").addEventListener("submit", (event) => event.preventDefault());
  $("adding").addEventListener("toggle", () => ($("adding").open ? pick() : untapped()));
  for (const id of ["add", "take"]) $(id).addEventListener("click", add);
  for (const id of ["replace", "again", "overwrite"]) $(id).addEventListener("change", commandLine);
  $("save").addEventListener("click", save);
  $("done").addEventListener("click", done);
  untapped();
  show();
}

async function choose() {
  const [file] = $("file").files;
  if (!file) return;
  $("unreadable").textContent = "";
  const headers = { "Content-Type": "application/octet-stream" };
  try {
    const path = `/api/choose?name=${encodeURIComponent(file.name)}`;
    const answer = await fetch(path, { method: "POST", headers, body: file });
    if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
    const found = await answer.json();
    if (found.refused) $("unreadable").textContent = found.refused;
    else await start();
  } catch (error) {
    $("unreadable").textContent = gone(error);
  }
}

// Parts

function show() {
  $("parts").replaceChildren(...state.parts.map(row));
  state.map.parts(state.parts, toggle);
}

function row(part) {
  const [item, label, box, words, when] = ["li", "label", "input", "span", "small"].map((tag) =>
    document.createElement(tag),
  );
  Object.assign(box, { type: "checkbox", checked: part.chosen });
  box.addEventListener("change", () => toggle(part, box.checked));
  when.textContent = between(part);
  words.append(part.label.replace(/^./, (first) => first.toUpperCase()), when);
  label.append(box, words);
  item.append(label);
  part.box = box;
  return item;
}

function toggle(part, on = !part.chosen) {
  part.chosen = on;
  part.box.checked = on;
  state.map.parts(state.parts, toggle);
  changed();
}

function between(part) {
  if (part.begin_ms === part.end_ms) return clock(part.begin_ms);
  const minutes = (part.end_ms - part.begin_ms) / 60000;
  const range = formatted().formatRange(new Date(part.begin_ms), new Date(part.end_ms));
  return `${range} (${minutes < 1 ? "under a minute" : `${Math.round(minutes)} min`})`;
}

function clock(ms) {
  return formatted().format(new Date(ms));
}

function formatted() {
  const options = { dateStyle: "medium", timeStyle: "medium", timeZone: state.recording.zone };
  return new Intl.DateTimeFormat(undefined, options);
}

// The first tap is where a part begins, the second where it ends, the third begins another one.
function tapped(index) {
  const other = state.begun ?? index;
  state.begun = state.begun === null ? index : null;
  $("take").hidden = state.begun !== null;
  $("adding").open = true;
  $("from").value = Math.min(index, other);
  $("to").value = Math.max(index, other);
  $("tap").textContent = state.begun === null
    ? "Protect this part, or tap where another one begins."
    : "Now tap the track where the part ends.";
  pick();
}

function untapped() {
  state.begun = null;
  $("take").hidden = true;
  $("tap").textContent = "To hide another part, tap the track where it begins.";
  state.map.unpick();
}

function pick(event) {
  if (event) state.begun = null; // by a slider
  const [from, to] = [$("from"), $("to")];
  if (Number(from.value) > Number(to.value)) {
    if (event?.target === to) from.value = to.value;
    else to.value = from.value;
  }
  for (const one of [from, to]) $(`${one.id}-time`).textContent = clock(state.recording.points[one.value].ms);
  state.map.pick(Number(from.value), Number(to.value));
}

function add() {
  const [from, to] = [$("from").value, $("to").value].map((i) => state.recording.points[i]);
  const middle = state.recording.points[(Number($("from").value) + Number($("to").value)) >> 1];
  const times = from === to ? [from.time] : [from.time, to.time];
  const known = state.parts.find((one) => String(one.times) === String(times));
  if (known) {
    toggle(known, true);
  } else {
    const label = from === to ? "a time that you chose" : "a part that you chose";
    state.parts.push({ label, times, begin_ms: from.ms, end_ms: to.ms, at: middle.at, chosen: true });
    state.parts.sort((one, other) => one.begin_ms - other.begin_ms);
  }
  $("adding").open = false; // and so nothing is tapped any more
  show();
  changed();
}

// Designs: first a look at once; where that has no design yet it says "at most", and one is waited for

function changed() {
  $("radius-value").textContent = metres(Number($("radius").value));
  $("epsilon-value").textContent = $("epsilon").value;
  state.turn += 1;
  state.asked?.abort();
  state.plan = null;
  $("save").disabled = true;
  $("numbers").classList.add("old");
  $("saved").textContent = $("unsaved").textContent = "";
  $("fetched").hidden = true;
  const begun = Date.now();
  clearInterval(state.waiting);
  state.waiting = setInterval(() => {
    const exactly = $("numbers").classList.contains("old") ? "Working it out" : "Working out how much exactly";
    $("status").textContent = `${exactly}: ${Math.round((Date.now() - begun) / 1000)} s`;
  }, PATIENCE);
  if (!state.looking) look();
}

async function look() {
  state.looking = true;
  let [turn, found] = [0, null];
  try {
    do {
      turn = state.turn;
      found = await post("/api/plan", { ...wanted(), at_once: true });
      if (found.refused && turn === state.turn) refused(found.refused);
      if (found.report) planned(found, turn === state.turn);
      else if (found.superseded && turn === state.turn) refused(ELSEWHERE);
    } while (turn !== state.turn);
  } catch (error) {
    refused(gone(error));
  }
  state.looking = false;
  if (found && found.plan === null) await design(turn);
}

async function design(turn) {
  state.asked = new AbortController();
  try {
    const found = await post("/api/plan", wanted(), state.asked.signal);
    if (turn !== state.turn) return;
    if (found.refused) refused(found.refused);
    else if (found.superseded) refused(ELSEWHERE);
    else planned(found, true);
  } catch (error) {
    if (turn === state.turn) refused(gone(error));
  }
}

function wanted() {
  return {
    parts: state.parts.filter((one) => one.chosen).map((one) => one.times),
    radius: Number($("radius").value),
    epsilon: Number($("epsilon").value),
    activity: $("activity").value,
    mechanism: $("mechanism").value,
  };
}

// latest: whether nothing was changed since. Without a plan to save, noise is more than it will be.
function planned(found, latest) {
  const { mechanism } = found.report;
  const least = (name) => {
    if (!found.circles.length) return "see the report"; // of places with names alone
    // Both ends may be one place: together they tell more than each.
    const whole = found.report.worst.circle_68_m ?? Infinity;
    return within(Math.min(whole, ...found.circles.map((one) => one[name] ?? Infinity)));
  };
  const most = found.plan ? "" : "at most ";
  $("refused").textContent = "";
  $("rms").textContent = most + metres(mechanism.rms_m);
  $("most").textContent = most + metres(mechanism.largest_rms_m);
  $("withheld").textContent = `${share(mechanism)}, ${found.minutes_withheld.toFixed(1)} min`;
  $("no-idea").textContent = least("no_idea_m");
  $("knows").textContent = least("knows_most_m");
  $("promise").textContent = found.promise;
  $("adversaries").replaceChildren(...found.report.adversaries.map(listed));
  state.command = found.command;
  commandLine();
  $("words").textContent = found.words ?? "It is being worked out.";
  $("numbers").hidden = $("more").hidden = false;
  for (const one of document.querySelectorAll(".moved")) one.hidden = !mechanism.largest_rms_m;
  state.map.published(found.published);
  state.map.circles(found.circles);
  if (!latest) return;
  $("numbers").classList.remove("old");
  $("status").textContent = mechanism.largest_rms_m
    ? `Moved by ${most}${metres(mechanism.rms_m)} on average, ${metres(mechanism.largest_rms_m)} where most.`
    : `${share(mechanism)} of all is left out, ${found.minutes_withheld.toFixed(1)} min; the rest is exactly as recorded.`;
  if (!found.plan) return;
  clearInterval(state.waiting);
  state.plan = found.plan;
  confirmations(found.before, found.exists);
  $("save").disabled = false;
  $("heed").replaceChildren(...found.heed.map(listed));
}

function share(mechanism) {
  const whole = mechanism.released_fixes + mechanism.withheld_fixes;
  return `${Math.round((100 * mechanism.withheld_fixes) / whole)} %`;
}

function listed(words) {
  const item = document.createElement("li");
  item.textContent = words;
  return item;
}

function refused(line) {
  clearInterval(state.waiting);
  $("heed").replaceChildren();
  $("status").textContent = "";
  $("refused").textContent = line;
  $("numbers").hidden = $("more").hidden = true;
  state.map.published([]);
  state.map.circles([]);
}

// Saving

function confirmations(before, exists) {
  $("before").textContent = before ?? "";
  $("before").hidden = $("replace-row").hidden = $("again-row").hidden = !before;
  $("overwrite-row").hidden = !exists;
  if (!before) $("replace").checked = $("again").checked = false;
  if (!exists) $("overwrite").checked = false;
  commandLine();
}

function commandLine() {
  const flags = ["replace", "again", "overwrite"].filter((id) => $(id).checked).map((id) => ` --${id}`);
  $("command").textContent = state.command + flags.join("");
}

async function save() {
  const name = state.plan;
  $("save").disabled = true;
  $("saved").textContent = "Saving";
  $("unsaved").textContent = "";
  try {
    const found = await post("/api/save", {
      plan: name,
      replace: $("replace").checked,
      again: $("again").checked,
      overwrite: $("overwrite").checked,
    });
    $("unsaved").textContent = found.refused ?? "";
    $("saved").textContent = found.refused ? "" : `Saved: ${found.saved}`;
    $("saved").scrollIntoView({ block: "nearest" });
    if (!found.refused) {
      $("fetched").hidden = false;
      $("download").download = found.saved;
      state.map.published(found.published);
      $("words").textContent = found.words;
      $("overwrite").checked = false;
    }
    confirmations($("before").textContent || null, $("overwrite-row").hidden ? !found.refused : true);
  } catch (error) {
    $("saved").textContent = "";
    $("unsaved").textContent = gone(error);
  }
  $("save").disabled = state.plan === null;
}

async function done() {
  try {
    await post("/api/done", {});
  } catch (error) {
    $("unsaved").textContent = gone(error);
    return;
  }
  state.turn += 1;
  state.asked?.abort();
  clearInterval(state.waiting);
  for (const one of document.querySelectorAll("input, select, button")) one.disabled = true;
  $("status").textContent = "";
  $("saved").textContent += " Ended: this window can be closed.";
}

async function post(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal });
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  return answer.json();
}

function gone(error) {
  return `The program must be running, got no answer (${error.message}): start trailveil open again.`;
}

function metres(value) {
  if (value >= 10000) return `${(value / 1000).toFixed(1)} km`;
  return `${Math.round(value)} m`;
}

function within(value) {
  return Number.isFinite(value) ? metres(value) : "nothing";
}
