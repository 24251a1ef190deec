// Colours of numbers, and the visible part of a picture.

/** Maximum numbers of a request in each direction, as in a page. */
const EDGE = 1024;

/** Returns 256 colours, interpolated between the colours of the bar below a picture, as pixel bytes. */
function coloursOf(stops) {
  const shades = stops.map((stop) => {
    const [, digits] = /#([0-9a-f]{6})/.exec(stop.getAttribute("stop-color"));
    return [0, 2, 4].map((at) => parseInt(digits.slice(at, at + 2), 16));
  });
  const colours = new Uint8Array(256 * 3);
  for (let number = 0; number < 256; number += 1) {
    const place = (number / 255) * (shades.length - 1);
    const below = Math.min(Math.floor(place), shades.length - 2);
    for (const part of [0, 1, 2]) {
      const [first, second] = [shades[below][part], shades[below + 1][part]];
      colours[3 * number + part] = Math.round(first + (second - first) * (place - below));
    }
  }
  return colours;
}

/** Returns the relative position of a value in a range, or NaN if it has none. */
function shareIn({ low, high, isLog }, value) {
  if (Number.isNaN(value)) return NaN;
  const [first, last, own] = isLog
    ? [Math.log(low), Math.log(high), value > 0 ? Math.log(value) : -Infinity]
    : [low, high, value];
  if (!(last > first)) return 0.5;
  return Math.min(Math.max((own - first) / (last - first), 0), 1);
}

/** Returns the value at a relative position in a range. */
function valueIn({ low, high, isLog }, share) {
  if (isLog) return Math.exp(Math.log(low) * (1 - share) + Math.log(high) * share);
  return low * (1 - share) + high * share;
}

/** Returns the pixels of `numbers`, in rows of `width`. Missing values are transparent. */
function pixelsOf(numbers, width, range, { colours, missing, samples }) {
  const { values } = numbers;
  const count = Math.floor(values.length / samples);
  const pixels = new ImageData(width, count / width);
  const out = pixels.data;
  const isWide = typeof values[0] === "bigint";
  const isFloat = numbers.type.startsWith("f");
  for (let place = 0; place < count; place += 1) {
    if (samples > 1) {
      out[4 * place + 3] = 255;
      for (let part = 0; part < samples; part += 1) {
        const value = Number(values[samples * place + part]);
        const share = part === 3 && isFloat ? Math.min(Math.max(value, 0), 1) : shareIn(range, value);
        out[4 * place + part] = Math.round(255 * (share || 0));
      }
      continue;
    }
    const value = isWide ? Number(values[place]) : values[place];
    const share = value === missing ? NaN : shareIn(range, value);
    if (Number.isNaN(share)) continue;
    const colour = 3 * Math.round(255 * share);
    out[4 * place] = colours[colour];
    out[4 * place + 1] = colours[colour + 1];
    out[4 * place + 2] = colours[colour + 2];
    out[4 * place + 3] = 255;
  }
  return pixels;
}

/** Returns start, end and step of the elements to request from `begin` in an axis of `length`. */
function sliceOf(begin, end, length, step) {
  const first = Math.max(Math.floor(begin / step) * step, 0);
  return [first, Math.min(Math.max(Math.ceil(end), first + 1), length), step];
}

/** Returns the slices of rows and columns that a window shows, in the order of the elements. */
function slicesOf(window, { height, width, isBelow, isRight }) {
  const { x, y } = window;
  const down = isBelow ? height - y - window.height : y;
  const across = isRight ? width - x - window.width : x;
  const step = Math.max(1, Math.ceil(Math.max(window.height, window.width) / EDGE));
  return [
    sliceOf(down, down + window.height, height, step),
    sliceOf(across, across + window.width, width, step),
  ];
}

/** Returns a matrix with rows and columns exchanged. */
function transposed({ shape: [rows, columns], values, type, unit }) {
  const turned = new values.constructor(values.length);
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) turned[column * rows + row] = values[row * columns + column];
  }
  return { shape: [columns, rows], values: turned, type, unit };
}
