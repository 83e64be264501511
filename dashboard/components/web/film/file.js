// The film in a file of its own (see dashboard/components/documents/film_file.py): the same player, its message in the page.

import { fromBase64 } from '../kit/base64.js';
import { Player } from './player.js';

new Player(document.body).update(fromBase64(document.getElementById('film-message').textContent.trim()));
