// This finds pages by their words. It loads the words of all pages, and lunr, when the reader first uses the search.
'use strict';
(function () {
  const input = document.getElementById('search');
  const list = document.getElementById('found');
  const most = 12;
  let index = null;
  let loading = null;

  function load(name) {
    return new Promise(function (resolve, reject) {
      const script = document.createElement('script');
      script.src = base_url + '/search/' + name;
      script.onload = resolve;
      script.onerror = function () { reject(new Error(name + ' is missing')); };
      document.head.append(script);
    });
  }

  function make_index() {
    index = lunr(function () {
      this.ref('at');
      this.field('title', {boost: 5});
      this.field('text');
      this.metadataWhitelist = [];
      search_pages.forEach(function (page, at) { this.add({at: at, title: page.title, text: page.text}); }, this);
    });
  }

  function ready() {
    loading = loading || Promise.all([load('lunr.js'), load('index.js')]).then(make_index);
    return loading;
  }

  // Every word has to be there. The last one may be unfinished.
  function find(words) {
    const terms = words.toLowerCase().split(/[^\p{L}\p{N}_]+/u).filter(Boolean);
    return index.query(function (query) {
      terms.forEach(function (term, at) {
        const is_last = at === terms.length - 1;
        const stemmed = lunr.stemmer(new lunr.Token(term)).toString();
        query.term(stemmed, {presence: is_last ? lunr.Query.presence.OPTIONAL : lunr.Query.presence.REQUIRED, boost: 10});
        if (is_last) query.term(term, {wildcard: lunr.Query.wildcard.TRAILING});
      });
    }).slice(0, most).map(function (result) { return search_pages[result.ref]; });
  }

  function around(text, words) {
    const first = words.toLowerCase().split(/\s+/)[0];
    const at = Math.max(0, text.toLowerCase().indexOf(first) - 40);
    return (at ? '… ' : '') + text.slice(at, at + 120) + (text.length > at + 120 ? ' …' : '');
  }

  function show(words, pages) {
    list.replaceChildren();
    pages.forEach(function (page) {
      const item = document.createElement('li');
      const link = document.createElement('a');
      link.href = base_url + '/' + page.location;
      link.textContent = page.title;
      const text = document.createElement('small');
      text.textContent = around(page.text, words);
      item.append(link, text);
      list.append(item);
    });
    if (!pages.length) list.append(Object.assign(document.createElement('li'), {textContent: 'No page has these words.'}));
    list.hidden = false;
  }

  function search() {
    const words = input.value.trim();
    if (words.length < 2) {
      list.hidden = true;
      return;
    }
    ready().then(function () {
      if (input.value.trim() === words) show(words, find(words));
    }, function (error) {
      list.replaceChildren(Object.assign(document.createElement('li'), {textContent: 'The search does not work: ' + error.message}));
      list.hidden = false;
    });
  }

  input.addEventListener('input', search);
  // index.html?q=words opens the site with these words.
  input.value = new URLSearchParams(location.search).get('q') || '';
  if (input.value) search();

  const here = document.querySelector('nav [aria-current]');
  if (here) here.scrollIntoView({block: 'nearest'});

  const menu = document.getElementById('menu');
  menu.addEventListener('click', function () {
    menu.setAttribute('aria-expanded', String(menu.getAttribute('aria-expanded') !== 'true'));
  });
})();
