// The numbers of a figure, as tables and as arrays.
//
// A series is {name, dims, values, extra}. `dims` has one entry an axis of `values`: {name, at, tokens}, `at` being the
// places and `tokens` their labels or null. `values` and each of `extra` are columns {name, dtype, data}, in the order of
// rows; a matrix has two dims, a curve one. dtype is NumPy's name: '<f4', '|b1', '<U' ….

/** The series as {header, rows}, a row a number, columns that a series does not have left empty. */
export function table(series) {
  const all = series.map(columns);
  const header = [...new Set(all.flatMap((each) => Object.keys(each)))];
  const rows = all.flatMap((each) =>
    Array.from({ length: each.series.data.length }, (_, i) =>
      header.map((name) => (each[name] ? { dtype: each[name].dtype, value: each[name].data[i] } : null))
    )
  );
  return { header, rows };
}

function columns({ name, dims, values, extra }) {
  const count = values.data.length;
  const made = { series: { dtype: '<U', data: Array(count).fill(name) } };
  let run = count; // of equal entries, along the axis at hand
  for (const { name: axis, at, tokens } of dims) {
    run /= Math.max(1, at.data.length);
    const place = (i) => Math.floor(i / run) % at.data.length;
    made[axis] = { dtype: at.dtype, data: Array.from({ length: count }, (_, i) => at.data[place(i)]) };
    if (tokens) made[`${axis}_token`] = { dtype: '<U', data: Array.from({ length: count }, (_, i) => tokens[place(i)]) };
  }
  for (const column of [values, ...extra]) made[column.name] = column;
  return made;
}

/** The series as named arrays {dtype, shape, data}: a matrix by its own name, its axes and tokens beside it, once. */
export function arrays(series) {
  const made = {};
  const add = (name, array) => {
    const safe = name.replace(/[^A-Za-z0-9._-]+/g, '_');
    const text = ({ dtype, shape, data }) => JSON.stringify([dtype, shape, Array.from(data, String)]);
    let free = safe;
    for (let i = 2; made[free] && text(made[free]) !== text(array); i++) free = `${safe}_${i}`;
    made[free] = array;
  };
  const lone = series.length === 1;
  for (const { name, dims, values, extra } of series) {
    const shape = dims.map(({ at }) => at.data.length);
    add(name, { dtype: values.dtype, shape, data: values.data });
    for (const column of extra) add(lone ? column.name : `${name}.${column.name}`, { ...column, shape });
    for (const { name: axis, at, tokens } of dims) {
      // Series that share an axis share its array; another axis of the same name gets a number.
      add(axis, { dtype: at.dtype, shape: [at.data.length], data: at.data });
      if (tokens) add(`${axis}_token`, { dtype: '<U', shape: [tokens.length], data: tokens });
    }
  }
  return made;
}

/** Places counted from `first`, as an axis has them. */
export function places(count, first = 0, step = 1) {
  const whole = Number.isInteger(first) && Number.isInteger(step);
  const data = Array.from({ length: count }, (_, i) => first + i * step);
  return { dtype: whole ? '<i4' : '<f8', data };
}
