// Rows of a table, read from its CSV file (RFC 4180).

/** Loads the records of a part of `place`, each as a list of texts. */
async function recordsOf(place, axes, signal) {
  const response = await answer(partOf(place, axes), signal);
  return recordsIn(await response.text());
}

function recordsIn(text) {
  const records = [];
  let record = [];
  let at = 0;
  while (at < text.length) {
    const [field, end] = text[at] === '"' ? quoted(text, at) : plain(text, at);
    record.push(field);
    at = end;
    if (text[at] === ",") {
      at += 1;
      if (at < text.length && text[at] !== "\n" && text[at] !== "\r") continue;
      record.push("");
    }
    if (text[at] === "\r") at += 1;
    at += 1;
    records.push(record);
    record = [];
  }
  return records;
}

/** Parses a quoted field that starts at `begin`. Returns its text and its end. */
function quoted(text, begin) {
  let end = begin + 1;
  for (;;) {
    const quote = text.indexOf('"', end);
    if (quote < 0) throw new Error("the table is cut");
    if (text[quote + 1] !== '"') {
      return [text.slice(begin + 1, quote).replaceAll('""', '"'), quote + 1];
    }
    end = quote + 2;
  }
}

function plain(text, begin) {
  let end = begin;
  while (end < text.length && !",\r\n".includes(text[end])) end += 1;
  return [text.slice(begin, end), end];
}
