// Puts documents into one file: the server's empty hand-out (dashboard/components/documents/pages.py) with the documents in it.

import { toBase64 } from '../kit/base64.js';
import { compressed } from '../kit/gzip.js';
import { escaped } from '../takeaway/page.js';

/** The file, as text: `title` and documents (see write.js), a page each. `template` is the empty one. */
export async function handOut(template, title, documents) {
  const packed = toBase64(await compressed(JSON.stringify(documents)));
  return template.replaceAll('@@TITLE@@', () => escaped(title)).replace('@@DOCUMENTS@@', () => packed);
}
